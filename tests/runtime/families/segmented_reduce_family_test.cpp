#include "kernel_templates/segments_arguments.h"
#include "runtime/families/segmented_reduce/segmented_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include <hone/error.h>

#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/segmented_reduce/segment_offsets.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"

namespace hone {
namespace {

/// Ways to divide the work.
constexpr SegmentedPolicy kGrid{.scope = Scope::grid};
constexpr SegmentedPolicy kGridTwice{.scope = Scope::grid, .combine = Combine::second_kernel};
constexpr SegmentedPolicy kThread{.scope = Scope::warp, .threads_per_segment = 1};
constexpr SegmentedPolicy kThreads4{.scope = Scope::warp, .threads_per_segment = 4};
constexpr SegmentedPolicy kWarp{.scope = Scope::warp, .threads_per_segment = 32};
constexpr SegmentedPolicy kBlock{.scope = Scope::block};

using segment_offsets::Offsets;
using testing::HasSubstr;
using test::Names;

Problem sum_f32(std::int64_t segments, std::int64_t elements) {
  return segmented_reduce_problem({}, DType::i32, segments, elements);
}

Policy policy(SegmentedPolicy division, std::int32_t threads = 128, std::int32_t bytes = 32) {
  division.block_threads = threads;
  division.thread_bytes = bytes;
  return Policy::of(division);
}

DeviceFacts large_gpu() {
  DeviceFacts facts;
  facts.max_threads_per_block = 1024;
  return facts;
}

bool is_among(const std::vector<Policy>& policies, const SegmentedPolicy& division) {
  return std::any_of(policies.begin(), policies.end(), [&](const Policy& one) {
    const auto segmented = one.as<SegmentedPolicy>();
    return segmented.scope == division.scope && segmented.combine == division.combine &&
           segmented.threads_per_segment == division.threads_per_segment;
  });
}

TEST(SegmentOffsets, AscendFromNothingToAllElements) {
  for (std::string_view kind : segment_offsets::kinds())
    for (std::int64_t segments : {1, 2, 3, 63, 64, 65, 1000, 70001})
      for (std::int64_t elements : {0, 1, 2, 999, 1000001}) {
        const std::vector<std::byte> bytes = segment_offsets::make(kind, DType::i32, segments, elements);
        const Offsets offsets(DType::i32, bytes);
        ASSERT_EQ(offsets.size(), segments + 1);
        EXPECT_EQ(offsets[0], 0);
        EXPECT_EQ(offsets[segments], elements);
        for (std::int64_t s = 0; s < segments; ++s) ASSERT_LE(offsets[s], offsets[s + 1]) << kind << ' ' << s;
      }
}

TEST(SegmentOffsets, OfNoSegmentAreOneNumber) {
  for (std::string_view kind : segment_offsets::kinds())
    EXPECT_EQ(segment_offsets::make(kind, DType::i64, 0, 55).size(), 8u);
}

TEST(SegmentOffsets, ThoseOfAPowerLawDifferByOrdersOfMagnitude) {
  const std::vector<std::byte> bytes = segment_offsets::make("power_law", DType::i64, 100000, 3200000);
  const Offsets offsets(DType::i64, bytes);
  std::vector<std::int64_t> lengths;
  for (std::int64_t s = 0; s < 100000; ++s) lengths.push_back(offsets[s + 1] - offsets[s]);
  std::sort(lengths.begin(), lengths.end());
  EXPECT_EQ(lengths.front(), 0);
  EXPECT_LT(lengths[50000], 32);       // the mean
  EXPECT_GT(lengths.back(), 32 * 500);
}

TEST(SegmentOffsets, AllIsInOneSegmentAndThatIsVerified) {
  for (std::int64_t segments : {1, 2, 3, 1000, 1000000}) {
    const std::vector<std::byte> bytes =
        segment_offsets::make("one_segment", DType::i64, segments, std::int64_t{1} << 40);
    const Offsets offsets(DType::i64, bytes);
    std::int64_t full = 0;
    while (offsets[full + 1] == 0) ++full;
    EXPECT_EQ(offsets[full + 1], std::int64_t{1} << 40);
    const std::vector<ElementRange> parts = segment_offsets::verified(segments, std::int64_t{1} << 40);
    EXPECT_TRUE(std::any_of(parts.begin(), parts.end(), [&](const ElementRange& part) {
      return part.first <= full && full < part.first + part.count;
    })) << segments;
  }
}

TEST(SegmentOffsets, VerifiedPartsAreApartAndHaveBothEndsAndABoundedCost) {
  for (std::int64_t segments : {1, 2, 3, 4, 5, 33, 1000, 1638, 1639, 1000003})
    for (std::int64_t mean : {0, 1, 17, 3000, 200000}) {
      const std::vector<ElementRange> parts = segment_offsets::verified(segments, segments * mean);
      std::int64_t behind = 0;
      std::int64_t count = 0;
      for (const ElementRange& part : parts) {
        EXPECT_GE(part.first, behind);
        EXPECT_GT(part.count, 0);
        behind = part.first + part.count;
        count += part.count;
      }
      EXPECT_EQ(parts.front().first, 0);
      EXPECT_EQ(behind, segments);
      EXPECT_LE(count * std::min(mean, reduce_reference::kInputPeriod), 8 * reduce_reference::kInputPeriod)
          << segments << ' ' << mean;
    }
}

TEST(SegmentedReduceFamily, NamesWhatItRefuses) {
  const auto refusal = [](const ReduceSpec& spec, DType offsets, std::int64_t segments, std::int64_t elements) {
    const Problem problem = segmented_reduce_problem(spec, offsets, segments, elements);
    return problem.family->refuse(problem);
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refusal({}, DType::i32, 0, 0), "");
  EXPECT_EQ(refusal({}, DType::i32, 5, std::numeric_limits<std::int32_t>::max()), "");
  EXPECT_EQ(refusal({.op = ReduceOp::argmax}, DType::i64, 5, 0), "");
  EXPECT_THAT(refusal({}, DType::i32, -1, 0), Names("no extent", "negative"));
  EXPECT_THAT(refusal({}, DType::i32, 0, -1), Names("no extent", "negative"));
  EXPECT_THAT(refusal({}, DType::i32, 5, std::int64_t{1} << 31), Names("pass", "i64"));
  EXPECT_THAT(refusal({}, DType::i64, 5, kMost), Names("no memory"));
  EXPECT_THAT(refusal({}, DType::i64, kMost, 5), Names("no memory", "offsets"));
  EXPECT_THAT(refusal({.op = ReduceOp::dot}, DType::i64, 5, 5), Names("two arrays", "tuned_dot()"));
  EXPECT_THAT(refusal({.op = ReduceOp::logsumexp, .dtype = DType::i8}, DType::i64, 5, 5), Names("not defined"));
  EXPECT_THROW(segmented_reduce_family(DType::u32), Error);
}

TEST(SegmentedReduceFamily, AFewDozenPoliciesRemainForEveryShape) {
  for (const DTypeInfo& dtype : kDTypes)
    for (std::int64_t segments : {1, 1000, 1000000, 100000000})
      for (std::int64_t mean : {0, 1, 8, 100, 10000, 1000000}) {
        const Problem problem = segmented_reduce_problem({.op = ReduceOp::max, .dtype = dtype.dtype}, DType::i64,
                                                         segments, segments * mean);
        const std::vector<Policy> policies = allowed_policies(problem, large_gpu());
        EXPECT_GE(policies.size(), 4u) << to_string(problem);
        EXPECT_LE(policies.size(), 60u) << to_string(problem);
        EXPECT_TRUE(is_among(policies, kGrid)) << to_string(problem);
        EXPECT_TRUE(is_among(policies, kGridTwice)) << to_string(problem);
      }
}

/// States of 16 bytes take as much shared memory as elements in flight.
TEST(SegmentedReduceFamily, TilesWithoutSharedMemoryEnoughAndLanesWithTooManyElementsAreNotValid) {
  const auto code_of = [](const ReduceSpec& spec, std::int32_t threads, std::int32_t bytes) {
    const Problem problem = segmented_reduce_problem(spec, DType::i64, 1 << 10, 1 << 24);
    return problem.family->is_valid(problem, policy(kGrid, threads, bytes), h100_facts()).code;
  };
  const ReduceSpec wide{.op = ReduceOp::minmax, .dtype = DType::f64};
  EXPECT_EQ(code_of(wide, 256, 64), ReasonCode::static_smem);
  EXPECT_EQ(code_of(wide, 128, 64), ReasonCode::none);
  EXPECT_EQ(code_of({.dtype = DType::f16}, 128, 64), ReasonCode::none);
  EXPECT_NE(code_of({.dtype = DType::f16}, 128, 128), ReasonCode::none);
}

TEST(SegmentedReduceFamily, EveryOperationHasAPolicyForAnyLengths) {
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes)
      for (const std::int64_t elements : {std::int64_t{1} << 24, std::int64_t{1} << 40}) {
        if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype)) continue;
        const Problem problem =
            segmented_reduce_problem({.op = op.op, .dtype = dtype.dtype}, DType::i64, 1 << 20, elements);
        EXPECT_TRUE(is_among(allowed_policies(problem, h100_facts()), kGrid)) << to_string(problem);
      }
}

TEST(SegmentedReduceFamily, FewThreadsTakeShortSegmentsAndBlocksLongOnes) {
  const std::vector<Policy> of_short = allowed_policies(sum_f32(1 << 20, 8 << 20), large_gpu());
  EXPECT_TRUE(is_among(of_short, kThread));
  EXPECT_TRUE(is_among(of_short, kThreads4));
  EXPECT_FALSE(is_among(of_short, kBlock));
  const std::vector<Policy> of_long = allowed_policies(sum_f32(1 << 10, 1 << 26), large_gpu());
  EXPECT_TRUE(is_among(of_long, kBlock));
  EXPECT_TRUE(is_among(of_long, kWarp));
  EXPECT_FALSE(is_among(of_long, kThread));
}

TEST(SegmentedReduceFamily, TheLongestSegmentHoldsUpThoseThatDoNotDivideIt) {
  const Problem problem = sum_f32(1 << 20, 32 << 20);
  EXPECT_EQ(segmented_reduce_family().shape(problem, policy(kGrid)).critical_path_loads, 0);
  const double of_warp = segmented_reduce_family().shape(problem, policy(kWarp)).critical_path_loads;
  EXPECT_NEAR(of_warp, 1300 * 32 * 4 / (32 * 32), 5);
  EXPECT_GT(segmented_reduce_family().shape(problem, policy(kThread)).critical_path_loads, of_warp);
  EXPECT_LT(segmented_reduce_family().shape(problem, policy(kBlock)).critical_path_loads, of_warp);
}

TEST(SegmentedReduceFamily, WhatServesOneShapeServesAllOfItsClass) {
  const Problem middle = sum_f32(1 << 14, 1 << 20);
  const auto ranges = size_ranges(middle.extents);
  for (std::int64_t segments : {ranges[0].first, ranges[0].last})
    for (std::int64_t elements : {ranges[1].first, ranges[1].last}) {
      EXPECT_EQ(allowed_policies(sum_f32(segments, elements), large_gpu()), allowed_policies(middle, large_gpu()));
      for (const Policy& one : allowed_policies(middle, large_gpu())) {
        EXPECT_TRUE(segmented_reduce_family()
                        .unit(middle, one)
                        .has_code_of(segmented_reduce_family().unit(sum_f32(segments, elements), one)));
      }
    }
}

TEST(SegmentedReduceFamily, IndicesAreWideWhereEndsAndElementsTogetherNeedIt) {
  const auto source = [](std::int64_t segments, std::int64_t elements) {
    const Problem problem = segmented_reduce_problem({}, DType::i64, segments, elements);
    return problem.family->unit(problem, policy(kGrid)).source;
  };
  EXPECT_THAT(source(1 << 20, 1 << 30), HasSubstr("unsigned,"));
  EXPECT_THAT(source(1 << 30, 1 << 30), HasSubstr("unsigned long long,"));
  EXPECT_THAT(source(1 << 10, std::int64_t{1} << 31), HasSubstr("unsigned long long,"));
}

TEST(SegmentedReduceFamily, TheJoinOfTheSecondKernelIsOneBlockAndKnowsTheGrid) {
  const Problem problem = sum_f32(1000, 100000);
  const std::array<void*, 3> buffers{};
  LaunchList list;
  segmented_reduce_family().encode(problem, {policy(kGridTwice), {50}}, buffers, nullptr, list);
  const std::vector<Launch> launches(list.begin(), list.end());
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].grid.x, 50u);
  EXPECT_EQ(launches[1].grid.x, 1u);
  EXPECT_EQ(static_cast<const SegmentsArguments*>(launches[1].arguments.value(0))->blocks, 50u);
  EXPECT_TRUE(launches[0].dependent_launch && launches[1].dependent_launch);
}

TEST(SegmentedReduceFamily, EachEntryOfTheOffsetsIsChecked) {
  const Problem problem = sum_f32(3, 10);
  const auto refusal = [&](const std::array<std::int32_t, 4>& offsets) {
    return segmented_reduce_family().refuse_contents(problem, 1, std::as_bytes(std::span(offsets)));
  };
  EXPECT_EQ(refusal({0, 0, 10, 10}), "");
  EXPECT_EQ(refusal({4, 5, 6, 7}), "");
  EXPECT_THAT(refusal({0, 5, 4, 11}), Names("offsets[2]", "4", "less", "offsets[1]", "5"));
  EXPECT_THAT(refusal({0, 5, 6, 11}), Names("offsets[3]", "11", "outside", "10 elements"));
}

TEST(SegmentedReduceFamily, VerificationSeesEveryWrongSegment) {
  const Problem problem = segmented_reduce_problem({.op = ReduceOp::sum, .dtype = DType::i32}, DType::i32, 3, 10);
  const std::array<std::int32_t, 10> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::array<std::int32_t, 4> offsets{0, 4, 4, 10};
  const auto bytes_of = [](const auto& array) {
    const auto bytes = std::as_bytes(std::span(array));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::byte> patterns[] = {bytes_of(values), bytes_of(offsets)};
  std::array<std::int64_t, 3> sums{10, 0, 45};
  const Candidate candidate{policy(kGrid), {1}};
  const auto verdict = [&] {
    const std::vector<std::byte> outputs[] = {bytes_of(sums)};
    return segmented_reduce_family().verifier().verify(problem, candidate, patterns, outputs);
  };
  EXPECT_EQ(verdict(), "");
  for (std::int64_t& one : sums) {
    ++one;
    EXPECT_THAT(verdict(), Names("result"));
    --one;
  }
}

}  // namespace
}  // namespace hone
