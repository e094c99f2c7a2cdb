// Policies of rms_norm of every kind, launched directly on a real device, around the limits of what they hold.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/rms_norm.h>

#include "runtime/device/host/host_device.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/verify_in_grids.h"

namespace hone {
namespace {

class RmsNormPolicies : public DeviceTest {
 protected:
  struct Shape {
    std::int64_t rows, columns, in_gap = 0, out_gap = 0;
  };

  /// Rows with gaps between them, in one of three dtypes by turns.
  static Problem problem_of(const Shape& shape, std::size_t turn, bool has_weight, bool has_residual,
                            std::uint32_t alignment) {
    return rms_norm_problem({.dtype = std::array{DType::f16, DType::f32, DType::bf16}[turn % 3],
                             .rows = shape.rows,
                             .columns = shape.columns,
                             .in_pitch = shape.columns + shape.in_gap,
                             .out_pitch = shape.columns + shape.out_gap},
                            has_weight, has_residual, alignment);
  }

  static Policy policy_of(const Problem& problem, std::string_view text) {
    std::string fault;
    const auto policy = problem.family->space().parse(text, &fault);
    EXPECT_TRUE(policy) << fault;
    return policy.value();
  }

  /// Every `step`th policy on all that winners are verified on, in place, too, and in several grids.
  void verify_policies(const Problem& problem, std::size_t step) {
    std::vector<Policy> policies;
    const std::vector<Policy> allowed = allowed_policies(problem, device_->facts());
    for (std::size_t i = 0; i < allowed.size(); i += step)
      if (test::in_share(policies_met_++)) policies.push_back(allowed[i]);
    verify(problem, policies);
  }

  void verify(const Problem& problem, const std::vector<Policy>& policies,
              const std::vector<std::int64_t>& grids = {1, 7}) {
    expect_policies_right(device_, problem, policies, grids);
  }

  std::size_t policies_met_ = 0;  ///< those of all problems of a test share it
};

TEST_F(RmsNormPolicies, PoliciesOfEveryKindAreRight) {
  const std::size_t step = this->step(5);
  verify_policies(rms_norm_problem({.rows = 37, .columns = 64}, true, false), step);
  verify_policies(rms_norm_problem({.dtype = DType::bf16, .rows = 9, .columns = 1000}, true, true), step);
  verify_policies(rms_norm_problem({.dtype = DType::f32, .rows = 3, .columns = 4100}, false, true), step);
  verify_policies(rms_norm_problem({.rows = 11, .columns = 301}, false, false), step);
  verify_policies(rms_norm_problem({.dtype = DType::f32, .rows = 2, .columns = 40000}, true, false), 1);
  if (!is_cuda()) return;
  verify_policies(rms_norm_problem({.rows = 4096, .columns = 8192}, true, true), 1);
  verify_policies(rms_norm_problem({.dtype = DType::f32, .rows = 40, .columns = 1 << 18}, true, true), 1);
  verify_policies(rms_norm_problem({.rows = 3, .columns = 1 << 22}, false, false), 1);
}

/// A thread holds 2 packs in registers and up to 16 in shared memory, which are copied in parts of 4: rows end in
/// registers, in each part, at the limit of both, and behind it, where packs are read twice.
TEST_F(RmsNormPolicies, RowsHeldInSharedMemoryAreRightAroundEachLimit) {
  constexpr std::int64_t kHeld = 128 * (2 + 16);
  const std::vector<std::int64_t> rows_of_packs{
      1, 127, 128 * 2 - 1, 128 * 2, 128 * 2 + 1, 128 * 6, 128 * 6 + 1, 128 * 11 + 5, 128 * 14 - 1, kHeld - 1, kHeld,
      kHeld + 1, kHeld + 389};
  for (std::size_t i = 0; i < 2 * rows_of_packs.size(); ++i) {
    if (!test::in_share(policies_met_++)) continue;
    const bool has_residual = i % 2 == 1, has_weight = i / 2 % 2 == 1;
    const DType dtype = i % 3 == 0 ? DType::f32 : i % 3 == 1 ? DType::bf16 : DType::f16;
    const std::int64_t columns = rows_of_packs[i / 2] * (dtype == DType::f32 ? 4 : 8);
    const Problem problem =
        rms_norm_problem({.dtype = dtype, .rows = 5, .columns = columns}, has_weight, has_residual);
    ASSERT_EQ(problem.alignment, 16u);
    verify(problem, {policy_of(problem, "scope=block block_threads=128 staging=shared packs_per_thread=2 smem_kib=32 "
                                        "min_blocks=1")});
  }
  if (!is_cuda() || device_->facts().max_cluster_blocks < 16) return;
  for (const std::int64_t columns : {1 << 19, 1 << 20, (1 << 20) + 4, 1200000}) {
    if (!test::in_share(policies_met_++)) continue;
    const Problem problem = rms_norm_problem({.dtype = DType::f32, .rows = 20, .columns = columns}, true, true);
    verify(problem, {policy_of(problem, "scope=cluster cluster_blocks=16 block_threads=512 staging=shared "
                                        "packs_per_thread=4 smem_kib=224 min_blocks=1")});
  }
}

/// Rows that begin anywhere: shorter than a pack, with packs for some threads, for all, and for more than are held;
/// side by side, so that weights are in step with some of them, and at pitches that put x out of step with y.
TEST_F(RmsNormPolicies, RowsThatBeginAnywhereAreRightAroundEachLimit) {
  const std::vector<Shape> shapes{{9, 1},          {17, 7},        {5, 9},          {9, 17, 2, 0},  {5, 31, 0, 3},
                                  {17, 33},        {9, 1001},      {9, 1023, 1, 2}, {5, 1026},      {9, 2047},
                                  {9, 2049, 0, 1}, {5, 4097},      {5, 4100},       {3, 8191, 5, 6}, {9, 10007},
                                  {5, 18433},      {3, 20001, 3, 0}};
  for (const std::string_view staging :
       {"shifted weights=registers packs_per_thread=2", "shifted weights=registers packs_per_thread=8",
        "shifted weights=shared packs_per_thread=2", "shifted weights=shared packs_per_thread=8",
        "shared packs_per_thread=2 smem_kib=32"})
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (!test::in_share(policies_met_++)) continue;
      const bool shares_weights = staging.find("weights=shared") != std::string_view::npos;
      const bool has_residual = i % 2 == 1, has_weight = shares_weights || i / 2 % 2 == 0;
      const Problem problem = problem_of(shapes[i], i, has_weight, has_residual, i % 4 == 0 ? 4 : 16);
      if (problem.alignment >= 16) continue;
      verify(problem,
             {policy_of(problem, fmt::format("scope=block block_threads=128 staging={} min_blocks=1", staging))});
    }
  const Problem aligned = rms_norm_problem({.rows = 5, .columns = 4096}, true, false);
  const Policy shifted =
      policy_of(aligned, "scope=block block_threads=128 staging=shifted weights=registers packs_per_thread=2 "
                         "min_blocks=1");
  EXPECT_NE(aligned.family->is_valid(aligned, shifted, device_->facts()).text(), "");
  if (!is_cuda() || device_->facts().max_cluster_blocks < 16) return;
  for (const std::int64_t columns : {(1 << 18) + 1, (1 << 20) + 3, 1200001}) {
    const Problem problem = rms_norm_problem({.dtype = DType::f32, .rows = 20, .columns = columns}, true, true);
    for (const std::string_view staging : {"shifted weights=registers packs_per_thread=8",
                                           "shifted weights=shared packs_per_thread=8",
                                           "shared packs_per_thread=4 smem_kib=224"})
      if (test::in_share(policies_met_++))
        verify(problem, {policy_of(problem, fmt::format("scope=cluster cluster_blocks=16 block_threads=512 staging={} "
                                                        "min_blocks=1", staging))});
  }
}

/// Tiles: rows of one and of two a thread, in whole words, in words of shared memory that begin in the middle of an
/// element pair, by groups of lanes, side by side and with gaps; more of them than a tile has, and fewer than a thread.
TEST_F(RmsNormPolicies, RowsInTilesAreRight) {
  const std::vector<Shape> shapes{{1, 1},    {700, 2}, {901, 3}, {5, 5},          {1203, 7}, {400, 7, 0, 2},
                                  {257, 11}, {300, 12}, {90, 17}, {100, 33, 1, 0}, {40, 77}};
  for (std::size_t i = 0; i < 3 * shapes.size(); ++i) {
    if (!test::in_share(policies_met_++)) continue;
    const Problem problem = problem_of(shapes[i / 3], i, i / 3 % 2 == 0, false, i % 2 == 0 ? 16 : 2);
    if (problem.alignment >= 16) continue;
    std::vector<Policy> policies;
    for (const auto& [lanes, packs] : {std::pair{1, 4}, {8, 2}}) {
      policies.push_back(policy_of(problem, fmt::format("scope=warp threads_per_row={} rows_per_thread=1 "
                                                        "block_threads=128 staging=shared packs_per_thread={} "
                                                        "min_blocks=unset", lanes, packs)));
      if (!problem.family->is_valid(problem, policies.back(), device_->facts()).empty()) policies.pop_back();
    }
    EXPECT_FALSE(policies.empty());
    verify(problem, policies);
  }
  const Problem adds = rms_norm_problem({.rows = 9, .columns = 7}, true, true);
  const Policy tiles = policy_of(adds, "scope=warp threads_per_row=1 rows_per_thread=1 block_threads=128 "
                                       "staging=shared packs_per_thread=4 min_blocks=unset");
  EXPECT_NE(adds.family->is_valid(adds, tiles, device_->facts()).text(), "");
}

/// Rows shorter than a pack, a block and a tile of 128 threads with 2 packs each, and beyond; aligned, at odd lengths
/// side by side, so that rows begin anywhere and weights are in step with some of them, and at pitches that put x out
/// of step with y. Fewer rows than a pipeline's lag, and more than it keeps partial results of.
TEST_F(RmsNormPolicies, RowsThatManyBlocksShareAreRightAroundEachLimit) {
  const std::vector<Shape> shapes{{1, 1},         {40, 1},         {3, 7},          {1, 9},           {5, 16, 0, 8},
                                  {3, 24, 1, 0},  {3, 1023},       {1, 1024},       {3, 1025, 2, 0},  {2, 2047},
                                  {2, 2048},      {2, 2049},       {37, 2056},      {21, 4099},       {4, 4099, 0, 3},
                                  {3, 4096, 5, 6}, {1, 10007},     {2, 20000},      {19, 8192 + 4},   {4, 30001}};
  for (const std::string_view combine : {"second_kernel", "pipeline"})
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (!test::in_share(policies_met_++)) continue;
      const bool has_residual = (i % 2 == 1) == (combine == "pipeline"), has_weight = i / 3 % 2 == 0;
      const Problem problem = problem_of(shapes[i], i, has_weight, has_residual, i % 4 == 0 ? 4 : 16);
      verify(problem, {policy_of(problem, fmt::format("scope=grid combine={} block_threads=128 packs_per_thread=2 "
                                                      "min_blocks=1", combine))});
    }
}

/// Parts of many chunks, of one and of none; more rows than a ring holds; one group of warps and two that take rows in
/// turn; side by side at odd lengths, so that weights are in step with some rows, and at pitches that put x out of step
/// with y. The blocks of the host device run at once, one on each of its SMs.
TEST_F(RmsNormPolicies, RowsThatAGridHoldsAreRight) {
  if (!is_cuda()) {
    HostOptions options = usual_host_options();
    options.sm_count = 3;
    device_ = make_host_device(options);
  }
  const std::vector<Shape> shapes{{5, 8000},      {70, 1001},      {33, 17},       {5, 9600},      {4, 7999, 1, 0},
                                  {37, 1032},     {19, 2050, 0, 3}, {3, 4096, 5, 6}, {1, 3001},     {60, 40},
                                  {6, 4100, 4, 0}, {16, 2049}, {3, 60000},     {2, 70001, 3, 2}, {2, 120001}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!test::in_share(policies_met_++)) continue;
    const Problem problem = problem_of(shapes[i], i, i % 2 == 0, false, i % 4 == 0 ? 4 : 16);
    const Policy policy = policy_of(
        problem, fmt::format("scope=grid combine=held ring_kib=32 row_groups={} block_threads={} packs_per_thread={} "
                             "min_blocks=1", shapes[i].columns < 3000 ? 2 : 1, i % 3 == 0 ? 1024 : 512,
                             i % 5 == 0 ? 4 : 2));
    ASSERT_EQ(problem.family->is_valid(problem, policy, device_->facts()).text(), "") << to_string(problem);
    verify(problem, {policy}, {});
  }
}

}  // namespace
}  // namespace hone
