// Every policy of the reduce family, launched directly on a real device: not only those that win.
#include <array>
#include <random>
#include <span>

#include <gmock/gmock.h>

#include <hone/canonical_reduce.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/verify_in_grids.h"

namespace hone {
namespace {

class ReducePolicies : public DeviceTest {
 protected:
  /// Compiles `policies` on all cores and verifies each with the family's own reference, at several sizes and grids.
  void verify(const ReduceSpec& spec, const std::vector<Policy>& policies, const std::vector<std::int64_t>& sizes,
              std::uint32_t alignment) {
    const Problem largest = reduce_problem(spec, sizes.back(), alignment);
    std::vector<Unit> units;
    for (const Policy& policy : policies) units.push_back(unit_of(largest, policy));
    const std::vector<CompileOutcome> outcomes = BinaryMemo().compile(*device_, units);
    Workload workload(device_, largest, nullptr);
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      ASSERT_TRUE(outcomes[i].binary) << outcomes[i].error;
      const CompiledCode code = load_policy(*device_, largest, policies[i], units[i], outcomes[i].binary);
      std::vector<std::int64_t> grids{1};
      if (!largest.family->shape(largest, policies[i]).one_block) grids = {1, 2, 7};
      std::vector<Problem> problems;
      for (std::int64_t n : sizes) problems.push_back(reduce_problem(spec, n, alignment));
      EXPECT_EQ(verify_in_grids(*device_, workload, policies[i], code.module, problems, grids, workspace.data()), "");
    }
  }
};

/// Every policy of a space that the family allows on this device, from `first` on, in steps.
std::vector<Policy> some_policies(const Problem& problem, const DeviceFacts& facts, std::size_t first,
                                   std::size_t step) {
  const std::vector<Policy> some = allowed_policies(problem, facts);
  std::vector<Policy> chosen;
  for (std::size_t i = first % some.size(); i < some.size(); i += step) chosen.push_back(some[i]);
  return chosen;
}

TEST_F(ReducePolicies, AllOfThemSumF32) {
  std::vector<Policy> policies = some_policies(reduce_problem(ReduceOp::sum, DType::f32, 1), device_->facts(), 0, 1);
  // On the host, with the fewest threads alone: each is a fiber.
  if (!is_cuda())
    std::erase_if(policies, [](const Policy& policy) { return policy.as<ReducePolicy>().block_threads != 128; });
  std::size_t turn = 0;
  std::erase_if(policies, [&turn](const Policy&) { return !test::in_share(turn++); });
  verify({ReduceOp::sum, DType::f32}, policies, {0, 1, 33, 4097, 20001}, 4);
}

TEST_F(ReducePolicies, SomeOfThemForEveryOtherOperationAndDType) {
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      if (!reduce_supports(op.op, dtype.dtype)) continue;
      ++turn;
      if (!is_due(turn, 11)) continue;
      const Problem problem = reduce_problem(op.op, dtype.dtype, 1);
      const auto alignment = static_cast<std::uint32_t>(turn % 2 == 0 ? kMaxAlignment : dtype.size_bytes);
      const std::vector<Policy> policies =
          some_policies(problem, device_->facts(), 7 * turn, is_cuda() ? 41 : problem.family->space().all().size());
      std::vector<std::int64_t> sizes{1, 31, 1023, 10007};
      if (!op.needs_elements) sizes.insert(sizes.begin(), 0);
      verify({op.op, dtype.dtype}, policies, sizes, alignment);
    }
}

TEST_F(ReducePolicies, ReproducibleOnesHaveTheBitsOfTheDefinition) {
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      const ReduceSpec spec{.op = op.op, .dtype = dtype.dtype, .numerics = Numerics::reproducible};
      if (!reduce_supports(op.op, dtype.dtype) || !spec.is_reproducible()) continue;
      if (!is_due(++turn, 3)) continue;
      const auto alignment = static_cast<std::uint32_t>(turn % 2 == 0 ? kMaxAlignment : dtype.size_bytes);
      const Problem problem = reduce_problem(spec, 1, alignment);
      if (!refusal_of(problem).empty()) continue;
      std::vector<Policy> policies = some_policies(problem, device_->facts(), 7 * turn, is_cuda() ? 5 : 97);
      if (!is_cuda()) policies.resize(1, policies.front());
      verify(spec, policies, {0, 1, 31, 1023, 20001}, alignment);
    }
}

/// Batches of chunks that begin, end or both within a pack, at every address modulo a pack.
TEST_F(ReducePolicies, CutChunksHaveTheBitsOfTheDefinition) {
  const ReduceSpec spec{
      .op = ReduceOp::sum, .dtype = DType::f16, .result = DType::f32, .numerics = Numerics::reproducible};
  std::mt19937 random(3);
  std::vector<std::uint16_t> values(9000);
  for (std::uint16_t& value : values) value = static_cast<std::uint16_t>(random() % 0x5000 | random() % 2 << 15);
  const DeviceBuffer out(device_, sizeof(float));
  for (const int unroll : {1, 2, 4}) {
    const Policy policy = Policy::of(ReducePolicy{
        .block_threads = 128, .unroll = unroll, .finish = ReducePolicy::Finish::one_block});
    const Problem largest = reduce_problem(spec, static_cast<std::int64_t>(values.size()), 2);
    const Unit unit = unit_of(largest, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const LoadedCandidate loaded{{policy, {1}}, load_policy(*device_, largest, policy, unit, binary).module};
    for (const std::size_t offset : {0, 1, 4, 7})
      for (const std::int64_t n : {1, 3, 1016, 1023, 1024, 1025, 2049, 4100, 8191}) {
        const std::span<const std::uint16_t> elements(values.data(), static_cast<std::size_t>(n));
        const auto in = upload(std::vector<std::uint16_t>(elements.begin(), elements.end()), offset);
        const std::array<void*, 2> buffers{in.data, out.data()};
        loaded.enqueue(*device_, reduce_problem(spec, n, 2), buffers, nullptr, nullptr);
        float expected = 0;
        canonical_reduce(spec, {elements.data()}, {}, n, &expected);
        EXPECT_EQ(fetch(out.as<float>()), expected) << n << " elements, unroll " << unroll << ", offset " << offset;
      }
  }
}

/// More tiles than a block has rounds: one that is alone takes longer runs, others publish partials meanwhile.
TEST_F(ReducePolicies, ManyRoundsHaveTheBitsOfTheDefinition) {
  const ReduceSpec spec{.dtype = DType::f64, .numerics = Numerics::reproducible};
  constexpr std::int64_t kTile = 128 * 64 / sizeof(double), kRounds = 32;
  const std::vector<double> values = random_values<double>(4 * kRounds * kTile + 13);
  const DeviceBuffer out(device_, sizeof(double));
  const DeviceBuffer workspace = make_workspaces(device_, 1);
  using Finish = ReducePolicy::Finish;
  for (const Finish finish : {Finish::one_block, Finish::last_block, Finish::second_kernel}) {
    const Policy policy = Policy::of(ReducePolicy{.block_threads = 128, .unroll = 1, .finish = finish});
    const Problem largest = reduce_problem(spec, static_cast<std::int64_t>(values.size()), sizeof(double));
    const Unit unit = unit_of(largest, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const CompiledCode code = load_policy(*device_, largest, policy, unit, binary);
    for (const std::size_t offset : {0, 1}) {
      const auto in = upload(values, offset);
      const std::array<void*, 2> buffers{in.data, out.data()};
      for (const std::int64_t blocks : {1, 2})
        for (const std::int64_t tiles : {kRounds, 2 * kRounds, 4 * kRounds})
          for (const std::int64_t n : {tiles * kTile - 1, tiles * kTile, tiles * kTile + 13}) {
            if (finish == Finish::one_block && blocks > 1) continue;
            const LoadedCandidate loaded{{policy, {blocks}}, code.module};
            loaded.enqueue(*device_, reduce_problem(spec, n, sizeof(double)), buffers, workspace.data(), nullptr);
            double expected = 0;
            canonical_reduce(spec, {values.data()}, {}, n, &expected);
            EXPECT_EQ(fetch(out.as<double>()), expected)
                << n << " elements, offset " << offset << ", " << blocks << " × "
                << reduce_family().space().to_string(policy);
          }
    }
  }
}

/// The most elements in a pack, and conversions of several at once.
TEST_F(ReducePolicies, EveryVectorWidthForElementsOfAByte) {
  std::size_t turn = 0;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max})
    for (const DTypeInfo& dtype : kDTypes) {
      if (dtype.size_bytes != 1) continue;
      const ProblemClass problem_class(reduce_problem(op, dtype.dtype, 1));
      std::vector<Policy> policies;
      for (const int vector_bytes : {4, 8, 16, 32}) {
        const Policy policy =
            Policy::of(ReducePolicy{.block_threads = 128, .vector_bytes = vector_bytes, .unroll = 2});
        if (reduce_family().is_valid(problem_class, policy, device_->facts()).empty()) policies.push_back(policy);
      }
      EXPECT_GE(policies.size(), is_cuda() ? 3u : 4u);
      std::erase_if(policies, [&turn](const Policy&) { return !test::in_share(turn++); });
      verify({op, dtype.dtype}, policies, {0, 1, 31, 1023, 10007}, 1);
    }
}

TEST_F(ReducePolicies, TheTicketIsZeroAfterEveryLaunch) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::i64, 50000);
  const Policy policy =
      Policy::of(ReducePolicy{.block_threads = 128, .unroll = 1, .finish = ReducePolicy::Finish::last_block});
  const Unit unit = unit_of(problem, policy);
  const auto binary = std::make_shared<const Binary>(device_->compile(unit));
  const CompiledCode code = load_policy(*device_, problem, policy, unit, binary);
  const LoadedCandidate loaded{{policy, {7}}, code.module};
  const auto in = upload(std::vector<std::int64_t>(50000, 3));
  const DeviceBuffer out(device_, 8);
  const DeviceBuffer workspace = make_workspaces(device_, 1);
  const std::array<void*, 2> buffers{in.data, out.data()};
  for (int i = 0; i < 5; ++i) {
    loaded.enqueue(*device_, problem, buffers, workspace.data(), nullptr);
    EXPECT_EQ(fetch(out.as<std::int64_t>()), 150000);
    for (std::size_t word = 0; word < kWorkspaceHeaderBytes / 4; ++word)
      EXPECT_EQ(fetch(workspace.as<std::uint32_t>() + word), 0u);
  }
}

}  // namespace
}  // namespace hone
