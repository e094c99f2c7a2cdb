// The reduce templates under the checks of the host device: every way to combine blocks, every operation and dtype in
// turns, with unrolls in rotation; in several orders, at awkward sizes, aligned and not.
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/tuned_reduce.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/choose/compiled.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

using Finish = ReducePolicy::Finish;

constexpr std::size_t kMaxCases = 16;
constexpr std::size_t kMostResultBytes = 2 * sizeof(double);
constexpr std::size_t kReduceWorkspaceBytes = 4096;

/// One call on a slice of the input buffer.
struct ReduceCase {
  std::int64_t n = 0;
  std::int64_t first_element = 0;  ///< 1: one element beyond what vectors need
};

std::vector<ReduceCase> cases_of(std::int64_t tile) {
  return {{0, 0},           {1, 0}, {1, 1}, {31, 1}, {tile - 1, 0}, {tile, 1}, {tile + 1, 0}, {5 * tile - 3, 1},
          {7 * tile + 9, 0}};
}

/// `pattern` over and over.
std::vector<std::byte> repeated(const std::vector<std::byte>& pattern, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = pattern[i % pattern.size()];
  return result;
}

/// Makes the call `index` and compares its result with the reference.
void run_case(const HostRun& run, const Candidate& candidate, const Problem& problem, const ReduceCase& one,
              std::size_t index, const std::vector<std::vector<std::byte>>& patterns) {
  const KernelFamily& family = *problem.family;
  const std::size_t element_bytes = info(problem.dtype).size_bytes;
  const std::size_t offset = static_cast<std::size_t>(one.first_element) * element_bytes;
  auto* const out = run.buffer<std::byte>(patterns.size()) + index * kMostResultBytes;
  std::vector<void*> buffers;
  std::vector<std::vector<std::byte>> inputs;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    buffers.push_back(run.buffer<std::byte>(i) + offset);
    // The slice starts within the pattern: the reference wants one that starts with the slice.
    std::vector<std::byte> shifted(patterns[i]);
    std::rotate(shifted.begin(), shifted.begin() + static_cast<std::ptrdiff_t>(offset % shifted.size()), shifted.end());
    shifted.resize(std::min(shifted.size(), static_cast<std::size_t>(one.n) * element_bytes));
    inputs.push_back(std::move(shifted));
  }
  buffers.push_back(out);
  LaunchList launches;
  family.encode(problem, candidate, buffers, run.buffer<void>(patterns.size() + 1), launches);
  for (const Launch& launch : launches) run.launch(launch);

  const std::size_t result_bytes = family.buffers(problem).back().size_bytes();
  const std::vector<std::byte> outputs[] = {{out, out + result_bytes}};
  const std::string wrong = family.verifier().verify(problem, candidate, inputs, outputs);
  if (!wrong.empty()) throw Error(ErrorCode::device_failed, to_string(problem) + ": " + wrong);
}

HostCheck check_of(const ReduceSpec& spec, const Policy& policy, std::size_t rotation) {
  const auto reduce = policy.as<ReducePolicy>();
  const std::int64_t tile_bytes = std::int64_t{reduce.block_threads} * reduce.unroll * reduce.vector_bytes;
  const std::int64_t tile = tile_bytes / static_cast<std::int64_t>(info(spec.dtype).size_bytes);
  std::vector<ReduceCase> cases = cases_of(tile);
  if (info(spec.op).needs_elements) std::erase_if(cases, [](const ReduceCase& one) { return one.n == 0; });
  // Two arrays keep in step, so their alignment is the largest.
  const std::uint32_t alignment = info(spec.op).inputs == 2 ? kMaxAlignment : 1;
  const auto problem_of = [=](std::int64_t n) { return reduce_problem(spec, n, alignment); };
  const Problem largest = problem_of(8 * tile);
  const auto kinds = largest.family->verifier().input_kinds(largest);
  std::vector<std::vector<std::byte>> patterns;
  for (int i = 0; i < info(spec.op).inputs; ++i)
    patterns.push_back(largest.family->verifier().input_pattern(largest, i, kinds[rotation % kinds.size()]));
  const Candidate candidate{policy, {reduce.finish == Finish::one_block ? 1 : 5}};

  HostCheck check;
  check.unit = unit_of(largest, policy);
  check.looks_for_lost_updates = !kSanitized && rotation % 2 == 0;
  for (const std::vector<std::byte>& pattern : patterns)
    check.buffers.push_back(
        {"in", repeated(pattern, static_cast<std::size_t>(8 * tile + 2) * info(spec.dtype).size_bytes)});
  check.buffers.push_back({"out", std::vector<std::byte>(kMaxCases * kMostResultBytes)});
  check.buffers.push_back({"workspace", std::vector<std::byte>(kReduceWorkspaceBytes)});
  check.orders = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 1}};
  if (kSanitized) check.orders.resize(1);
  check.run = [=](const HostRun& run) {
    for (std::size_t i = 0; i < cases.size(); ++i)
      run_case(run, candidate, problem_of(cases[i].n), cases[i], i, patterns);
  };
  return check;
}

class ReduceCheck : public testing::TestWithParam<Finish> {};

TEST_P(ReduceCheck, IsRightInEveryOrder) {
  constexpr std::array<std::int32_t, 4> kUnrolls{1, 2, 4, 8};
  constexpr std::array<std::int32_t, 4> kVectorBytes{16, 32, 8, 4};
  constexpr std::size_t kEvery = kSanitized ? 29 : 15;  // no divisors of the number of dtypes
  auto rotation = static_cast<std::size_t>(GetParam());
  for (const ReduceOpInfo& op : kReduceOps) {
    for (const DTypeInfo& dtype : kDTypes) {
      ++rotation;
      // Every dtype in each way; the ways together see every operation.
      if (!reduce_supports(op.op, dtype.dtype) || !in_share(rotation, kEvery)) continue;
      const NanPolicy nan = rotation % 3 == 0 ? NanPolicy::ignore : NanPolicy::propagate;
      const std::int32_t widest = op.inputs == 2 ? 16 : 32;
      const std::int32_t vector_bytes =
          std::clamp(kVectorBytes[rotation / kEvery % 4], static_cast<std::int32_t>(dtype.size_bytes), widest);
      const Policy policy = Policy::of(ReducePolicy{.block_threads = rotation % 5 == 0 ? 256 : 128,
                                                    .vector_bytes = vector_bytes,
                                                    .unroll = kUnrolls[rotation / kEvery % 4],
                                                    .tail = rotation / kEvery % 3 == 1 ? Tail::shared : Tail::warp,
                                                    .finish = GetParam()});
      HostCheck check = check_of({.op = op.op, .dtype = dtype.dtype, .nan = nan}, policy, rotation);
      const HostCheckReport report = check_on_host(check);
      EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ReduceCheck,
                         testing::Values(Finish::one_block, Finish::last_block, Finish::second_kernel),
                         [](const testing::TestParamInfo<Finish>& way) {
                           switch (way.param) {
                             case Finish::one_block: return "OneBlock";
                             case Finish::last_block: return "LastBlock";
                             default: return "SecondKernel";
                           }
                         });

}  // namespace
}  // namespace hone::test
