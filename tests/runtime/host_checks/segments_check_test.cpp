// The templates of segmented reductions under the checks of the host device: every division, operations and dtypes in
// turns; in several orders, on every distribution of lengths, aligned and not.
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/segmented_reduce.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/choose/compiled.h"
#include "runtime/families/segmented_reduce/segment_offsets.h"
#include "runtime/families/segmented_reduce/segmented_policy.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

/// The ways to divide the work, with the block and the bytes of each test left open.
struct Division {
  std::string_view name;
  SegmentedPolicy policy;
};
constexpr std::array<Division, 7> kDivisions{
    {{"grid_last_block", {.scope = Scope::grid, .combine = Combine::last_block}},
     {"grid_second_kernel", {.scope = Scope::grid, .combine = Combine::second_kernel}},
     {"thread", {.scope = Scope::warp, .threads_per_segment = 1}},
     {"threads_4", {.scope = Scope::warp, .threads_per_segment = 4}},
     {"threads_16", {.scope = Scope::warp, .threads_per_segment = 16}},
     {"warp", {.scope = Scope::warp, .threads_per_segment = 32}},
     {"block", {.scope = Scope::block}}}};

/// One call, on elements that begin `first_element` behind a 16-byte boundary.
struct SegmentsCase {
  std::int64_t segments = 0;
  std::int64_t elements = 0;
  std::string_view lengths = "power_law";
  std::int64_t first_element = 0;
  std::int64_t max_blocks = 5;
};

/// A tile of up to 512 elements is reduced in parts if more than 31 segments end in it.
constexpr std::array kSegmentsCases{SegmentsCase{0, 0},
                                    SegmentsCase{1, 0},
                                    SegmentsCase{0, 100},
                                    SegmentsCase{1, 1, "uniform_lengths", 1},
                                    SegmentsCase{700, 5, "uniform_lengths"},
                                    SegmentsCase{31, 895, "uniform_lengths", 1, 1},
                                    SegmentsCase{32, 256, "uniform_lengths", 0, 1},
                                    SegmentsCase{62, 257, "uniform_lengths", 0, 1},
                                    SegmentsCase{1000, 1024, "uniform_lengths", 3, 1},
                                    SegmentsCase{301, 3001, "power_law", 1},
                                    SegmentsCase{3, 6007, "one_segment", 1, 3},
                                    SegmentsCase{1000, 4000, "mostly_empty"},
                                    SegmentsCase{2, 9001, "uniform_lengths", 0, 4}};
constexpr std::int64_t kMostSegments = 1000, kMostElements = 9001;

template <class T>
std::vector<T> repeated(const std::vector<T>& pattern, std::size_t count) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = pattern[i % pattern.size()];
  return result;
}

enum Buffer : std::size_t { kIn, kOffsets, kOut, kWorkspace };

void run_case(const HostRun& run, const Policy& policy, const Problem& problem, const SegmentsCase& one,
              const std::vector<std::byte>& pattern, const std::vector<std::byte>& offsets) {
  const KernelFamily& family = *problem.family;
  const std::size_t element_bytes = info(problem.dtype).size_bytes;
  const std::size_t shift = static_cast<std::size_t>(one.first_element) * element_bytes;
  std::copy(offsets.begin(), offsets.end(), run.buffer<std::byte>(kOffsets));
  auto* const out = run.buffer<std::byte>(kOut);
  const std::array<void*, 3> buffers{run.buffer<std::byte>(kIn) + shift, run.buffer<void>(kOffsets), out};
  const Candidate candidate{policy, {one.max_blocks}};
  LaunchList launches;
  family.encode(problem, candidate, buffers, run.buffer<void>(kWorkspace), launches);
  for (const Launch& launch : launches) run.launch(launch);

  const auto* const header = run.buffer<std::byte>(kWorkspace);
  if (std::any_of(header, header + kWorkspaceHeaderBytes, [](std::byte b) { return b != std::byte{0}; }))
    throw Error(ErrorCode::device_failed, "the workspace's header is not zero");
  // The reference's pattern begins where the array does.
  std::vector<std::byte> shifted(pattern);
  std::rotate(shifted.begin(), shifted.begin() + static_cast<std::ptrdiff_t>(shift % shifted.size()), shifted.end());
  shifted.resize(std::min(shifted.size(), static_cast<std::size_t>(one.elements) * element_bytes));
  const std::vector<std::byte> outputs[] = {{out, out + family.buffers(problem)[2].size_bytes()}};
  const std::vector<std::byte> patterns[] = {std::move(shifted), offsets};
  const std::string wrong = family.verifier().verify(problem, candidate, patterns, outputs);
  if (!wrong.empty())
    throw Error(ErrorCode::device_failed, to_string(problem) + " " + std::string(one.lengths) + ": " + wrong);
}

HostCheck check_of(const ReduceSpec& spec, DType offset_dtype, const Policy& policy, std::size_t rotation,
                   const std::vector<SegmentsCase>& cases = {kSegmentsCases.begin(), kSegmentsCases.end()}) {
  const auto problem_of = [=](const SegmentsCase& one) {
    return segmented_reduce_problem(spec, offset_dtype, one.segments, one.elements);
  };
  const Problem largest = problem_of({kMostSegments, kMostElements});
  const auto kinds = largest.family->verifier().input_kinds(largest);
  const std::vector<std::byte> pattern =
      largest.family->verifier().input_pattern(largest, 0, kinds[rotation % kinds.size()]);
  const std::size_t element_bytes = info(spec.dtype).size_bytes;

  HostCheck check;
  check.unit = unit_of(largest, policy);
  check.looks_for_lost_updates = !kSanitized && rotation % 3 == 0;
  check.buffers = {{"in", repeated(pattern, static_cast<std::size_t>(kMostElements + 2) * element_bytes)},
                   {"offsets", std::vector<std::byte>((kMostSegments + 1) * 8)},
                   {"out", std::vector<std::byte>(kMostSegments * 2 * 8)},
                   {"workspace", std::vector<std::byte>(4096)}};
  check.orders = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 1}};
  if (kSanitized) check.orders.resize(1);
  check.run = [=](const HostRun& run) {
    for (const SegmentsCase& one : cases) {
      const Problem problem = problem_of(one);
      run_case(run, policy, problem, one, pattern,
               segment_offsets::make(one.lengths, offset_dtype, one.segments, one.elements));
    }
  };
  return check;
}

class SegmentsCheck : public testing::TestWithParam<std::size_t> {};  // an index of kDivisions

TEST_P(SegmentsCheck, IsRightInEveryOrder) {
  std::size_t rotation = GetParam();
  SegmentedPolicy segmented = kDivisions[GetParam()].policy;
  const bool is_merged = segmented.is_merged();
  const std::size_t step = (is_merged ? 23 : 47) * (kSanitized ? 2 : 1);
  for (const ReduceOpInfo& op : kReduceOps) {
    if (op.inputs != 1) continue;
    for (const DTypeInfo& dtype : kDTypes) {
      ++rotation;
      if (!reduce_supports(op.op, dtype.dtype) || !in_share(rotation, step)) continue;
      const NanPolicy nan = rotation % 3 == 0 ? NanPolicy::ignore : NanPolicy::propagate;
      const DType offsets = rotation % 2 == 0 ? DType::i32 : DType::i64;
      segmented.thread_bytes = dtype.size_bytes == 8 ? 64 : dtype.size_bytes == 1 || rotation % 5 == 0 ? 16 : 32;
      segmented.block_threads = is_merged ? 64 : rotation % 7 == 0 ? 256 : 128;
      const Policy policy = Policy::of(segmented);
      HostCheck check = check_of({.op = op.op, .dtype = dtype.dtype, .nan = nan}, offsets, policy, rotation);
      const HostCheckReport report = check_on_host(check);
      EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Divisions, SegmentsCheck, testing::Range(std::size_t{0}, kDivisions.size()),
                         [](const testing::TestParamInfo<std::size_t>& division) {
                           return std::string(kDivisions[division.param].name);
                         });

/// Cases of which the share runs.
class DueCases {
 public:
  void add(const SegmentsCase& one) {
    if (in_share(met_++)) due_.push_back(one);
  }
  const std::vector<SegmentsCase>& due() const { return due_; }

 private:
  std::size_t met_ = 0;
  std::vector<SegmentsCase> due_;
};

// Tiles begin with a line of 256 bytes, and packs at the ends of a share may have elements of its neighbours: wherever
// shares begin and end, only elements of the array are read, and a segment ends on either side of a tile's border.
TEST(MergedSegmentsCheck, SharesMayBeginAndEndAnywhere) {
  DueCases cases;
  for (const std::int64_t tile : {128, 256, 512})
    for (std::int64_t shift = 0; shift < 4; ++shift)
      for (const std::int64_t elements : {tile - 1, tile, tile + 1, 3 * tile + shift})
        for (const std::string_view lengths : {"power_law", "mostly_empty", "one_segment"})
          cases.add({65, elements, lengths, shift, 1 + shift});
  for (const std::int64_t blocks : {1, 5, 16}) {
    cases.add({63, 1024, "uniform_lengths", 1, blocks});
    cases.add({1000, 0, "uniform_lengths", 1, blocks});
  }
  bool is_wide = false;
  for (const DType dtype : {DType::f32, DType::f16, DType::f64}) {
    const Policy policy = Policy::of(SegmentedPolicy{.scope = Scope::grid,
                                                     .combine = is_wide ? Combine::last_block : Combine::second_kernel,
                                                     .block_threads = 64,
                                                     .thread_bytes = is_wide ? 64 : 16});
    HostCheck check = check_of({.dtype = dtype}, is_wide ? DType::i64 : DType::i32, policy, 1, cases.due());
    check.orders.resize(1);
    const HostCheckReport report = check_on_host(check);
    EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
    is_wide = !is_wide;
  }
}

// A share may begin with the end of a segment, whose elements are all in the share before: indices then count from the
// next segment.
TEST(MergedSegmentsCheck, IndicesAreRightWhereverSharesBegin) {
  DueCases cases;
  for (std::int64_t blocks = 1; blocks <= 16; ++blocks)
    for (const std::string_view lengths : {"uniform_lengths", "mostly_empty"})
      cases.add({301, 3001, lengths, blocks % 4, blocks});
  for (const ReduceOp op : {ReduceOp::argmin, ReduceOp::argmax}) {
    const Policy policy = Policy::of(SegmentedPolicy{
        .scope = Scope::grid, .combine = Combine::second_kernel, .block_threads = 64, .thread_bytes = 16});
    HostCheck check = check_of({.op = op, .dtype = DType::u8}, DType::i32, policy, 1, cases.due());
    check.orders.resize(1);
    const HostCheckReport report = check_on_host(check);
    EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
  }
}

}  // namespace
}  // namespace hone::test
