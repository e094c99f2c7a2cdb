// Every built-in family under the checks of the host device: a sample of its policies on small shapes, in several
// orders of threads and blocks, and with outputs in place of inputs where they may be.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/rms_norm.h>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/every_family.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

/// A check of one policy on one problem. The buffers are the problem's, then the workspace.
class FamilyCheck {
 public:
  FamilyCheck(const Problem& problem, const Policy& policy, bool in_place, std::int64_t blocks = 5)
      : problem_(problem),
        candidate_{policy, {blocks}},
        specs_(problem.family->buffers(problem)),
        kind_(problem.family->verifier().input_kinds(problem).back()),
        in_place_(in_place) {}

  HostCheckReport run() {
    HostCheck check;
    check.unit = unit_of(problem_, candidate_.policy);
    check.looks_for_lost_updates = !kSanitized;
    for (std::size_t i = 0; i < specs_.size(); ++i) check.buffers.push_back({std::string(specs_[i].name), contents(i)});
    const std::size_t workspace = problem_.family->workspace_bytes(problem_, candidate_);
    check.buffers.push_back({"workspace", std::vector<std::byte>(std::max(workspace, kWorkspaceHeaderBytes)), false});
    check.orders = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 1}};
    if (kSanitized) check.orders.resize(1);
    check.run = [&](const HostRun& run) { launch_and_verify(run); };
    return check_on_host(check);
  }

 private:
  std::vector<std::byte> contents(std::size_t buffer) {
    std::vector<std::byte> bytes(specs_[buffer].size_bytes());
    if (!specs_[buffer].is_input) return bytes;
    patterns_.push_back(problem_.family->verifier().input_pattern(problem_, static_cast<int>(buffer), kind_));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = patterns_.back()[i % patterns_.back().size()];
    return bytes;
  }

  void launch_and_verify(const HostRun& run) const {
    std::vector<void*> buffers;
    for (const BufferSpec& spec : specs_) {
      const bool replaces = in_place_ && spec.in_place_of >= 0;
      buffers.push_back(run.buffer<void>(replaces ? static_cast<std::size_t>(spec.in_place_of) : buffers.size()));
    }
    const auto* const header = run.buffer<std::byte>(specs_.size());
    LaunchList launches;
    problem_.family->encode(problem_, candidate_, buffers, run.buffer<void>(specs_.size()), launches);
    for (const Launch& launch : launches) run.launch(launch);
    if (std::any_of(header, header + kWorkspaceHeaderBytes, [](std::byte byte) { return byte != std::byte{0}; }))
      throw Error(ErrorCode::device_failed, "the header of the workspace is not zero as it was before");

    std::vector<std::vector<std::byte>> outputs;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].is_input) continue;
      std::vector<std::byte>& output = outputs.emplace_back();
      const std::size_t bytes = info(specs_[i].dtype).size_bytes;
      for (const ElementRange& part : problem_.family->verifier().verified_parts(problem_, static_cast<int>(i))) {
        const auto* const first =
            static_cast<const std::byte*>(buffers[i]) + static_cast<std::size_t>(part.first) * bytes;
        output.insert(output.end(), first, first + static_cast<std::size_t>(part.count) * bytes);
      }
    }
    const std::string wrong = problem_.family->verifier().verify(problem_, candidate_, patterns_, outputs);
    if (!wrong.empty()) throw Error(ErrorCode::device_failed, to_string(problem_) + ": " + wrong);
  }

  const Problem problem_;
  const Candidate candidate_;
  const std::vector<BufferSpec> specs_;
  const std::string_view kind_;
  const bool in_place_;
  std::vector<std::vector<std::byte>> patterns_;
};

class FamiliesCheck : public testing::TestWithParam<FamilyRow> {};

TEST_P(FamiliesCheck, ASampleOfPoliciesIsRightInEveryOrder) {
  constexpr std::size_t kPoliciesOfAShape = 2;
  const DeviceFacts facts = Device::open("host")->facts();
  std::size_t turn = 0, met = 0;
  for (const SampleShape& shape : {SampleShape{9, 24, 4}, {3, 1028, 16}, {70, 7, 4}}) {
    const std::optional<Problem> problem = problem_of_family(GetParam(), shape, ++turn);
    if (!problem) continue;
    const std::vector<Policy> policies = allowed_policies(*problem, facts);
    for (std::size_t i = 0; i < std::min(kPoliciesOfAShape, policies.size()); ++i) {
      if (!in_share(met++)) continue;
      const Policy& policy = policies[(i * policies.size() / kPoliciesOfAShape + turn) % policies.size()];
      const HostCheckReport report = FamilyCheck(*problem, policy, (turn + i) % 2 == 0).run();
      EXPECT_TRUE(report.ok()) << to_string(*problem) << " " << problem->family->space().to_string(policy) << "\n"
                               << report.failure;
    }
  }
  EXPECT_GT(met, 0u);
}

/// Rows that many blocks share are longer than those of the samples.
TEST(RmsNormCheck, ChunksAreRightInEveryOrder) {
  const auto check = [](const RmsNormSpec& spec, bool has_weight, bool has_residual, std::string_view combine) {
    if (!in_share(combine)) return;
    const Problem problem = rms_norm_problem(spec, has_weight, has_residual);
    const std::optional<Policy> policy = problem.family->space().parse(
        fmt::format("scope=grid combine={} block_threads=128 packs_per_thread=2 min_blocks=1", combine));
    ASSERT_TRUE(policy);
    const HostCheckReport report = FamilyCheck(problem, *policy, spec.in_pitch == spec.out_pitch).run();
    EXPECT_TRUE(report.ok()) << to_string(problem) << " " << combine << "\n" << report.failure;
  };
  for (const std::string_view combine : {"second_kernel", "pipeline"}) {
    check({.dtype = DType::f16, .rows = 18, .columns = 6001}, true, true, combine);
    check({.dtype = DType::f32, .rows = 3, .columns = 4096, .in_pitch = 4099, .out_pitch = 4096}, false, true, combine);
  }
}

/// A block waits for others only where each has an SM, so there is one.
TEST(RmsNormCheck, RowsThatAGridHoldsAreRightInEveryOrder) {
  const auto check = [](const RmsNormSpec& spec, bool has_weight, int row_groups) {
    if (!in_share(fmt::format("{} held by {}", spec.columns, row_groups))) return;
    const Problem problem = rms_norm_problem(spec, has_weight, false);
    const std::optional<Policy> policy = problem.family->space().parse(
        fmt::format("scope=grid combine=held ring_kib=32 row_groups={} block_threads=512 packs_per_thread=2 "
                    "min_blocks=1", row_groups));
    ASSERT_TRUE(policy);
    const HostCheckReport report = FamilyCheck(problem, *policy, spec.in_pitch == spec.out_pitch, 1).run();
    EXPECT_TRUE(report.ok()) << to_string(problem) << " by " << row_groups << "\n" << report.failure;
  };
  check({.dtype = DType::f16, .rows = 19, .columns = 3001}, true, 1);
  check({.dtype = DType::f32, .rows = 16, .columns = 900, .in_pitch = 903, .out_pitch = 900}, false, 2);
  check({.dtype = DType::f32, .rows = 4, .columns = 12001}, true, 1);  // in part
}

/// Weights are out of step with most rows, and all inputs with the outputs where the pitches differ.
TEST(RmsNormCheck, RowsThatBeginAnywhereAreRightInEveryOrder) {
  const auto check = [](const RmsNormSpec& spec, bool has_weight, bool has_residual, std::string_view staging) {
    if (!in_share(staging)) return;
    const Problem problem = rms_norm_problem(spec, has_weight, has_residual);
    const std::optional<Policy> policy = problem.family->space().parse(
        fmt::format("scope=block block_threads=128 staging={} min_blocks=1", staging));
    ASSERT_TRUE(policy);
    const HostCheckReport report = FamilyCheck(problem, *policy, spec.in_pitch == spec.out_pitch).run();
    EXPECT_TRUE(report.ok()) << to_string(problem) << " " << staging << "\n" << report.failure;
  };
  for (const std::string_view staging : {"shifted packs_per_thread=2", "shared packs_per_thread=1 smem_kib=32"}) {
    check({.dtype = DType::f16, .rows = 5, .columns = 2501}, true, true, staging);
    check({.dtype = DType::f32, .rows = 3, .columns = 2051, .in_pitch = 2053, .out_pitch = 2051}, false, true, staging);
  }
}

/// More rows than a tile has, by threads with one and with two rows at once and by groups; in place, and with gaps.
TEST(RmsNormCheck, RowsInTilesAreRightInEveryOrder) {
  const auto check = [](const RmsNormSpec& spec, bool has_weight, int lanes) {
    const Problem problem = rms_norm_problem(spec, has_weight, false);
    const std::optional<Policy> policy = problem.family->space().parse(
        fmt::format("scope=warp threads_per_row={} rows_per_thread=1 block_threads=128 staging=shared "
                    "packs_per_thread=2 min_blocks=unset", lanes));
    ASSERT_TRUE(policy);
    const HostCheckReport report = FamilyCheck(problem, *policy, spec.in_pitch == spec.out_pitch).run();
    EXPECT_TRUE(report.ok()) << to_string(problem) << " " << lanes << "\n" << report.failure;
  };
  check({.dtype = DType::f16, .rows = 700, .columns = 7}, true, 1);
  check({.dtype = DType::bf16, .rows = 300, .columns = 6, .in_pitch = 7, .out_pitch = 6}, false, 1);
  check({.dtype = DType::f16, .rows = 90, .columns = 33}, true, 4);
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, FamiliesCheck,
                         testing::ValuesIn(built_in_families().begin(), built_in_families().end()),
                         [](const auto& instance) { return std::string(instance.param.family().name()); });

}  // namespace
}  // namespace hone::test
