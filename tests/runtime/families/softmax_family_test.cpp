// The softmax families as descriptions: what they refuse, which policies remain, and whether their reference would
// notice.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/dispatch/call_checks.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/softmax/softmax_reference.h"
#include "runtime/search/candidates.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Problem rows_of(std::int64_t rows, std::int64_t columns, const SoftmaxSpec& spec = {}, Pitches pitches = {}) {
  return softmax_problem(spec, SoftmaxShape::rows(rows, columns, pitches));
}

std::size_t policies_of(const Problem& problem, const DeviceFacts& facts) {
  return allowed_policies(problem, facts).size();
}

TEST(SoftmaxFamily, RefusesWhatMakesNoSenseByName) {
  const auto refusal = [](const Problem& problem) { return problem.family->refuse(problem); };
  EXPECT_EQ(refusal(rows_of(3, 5)), "");
  EXPECT_EQ(refusal(rows_of(0, 5)), "");
  EXPECT_EQ(refusal(rows_of(5, 0)), "");
  EXPECT_THAT(refusal(rows_of(-1, 5)), Names("-1", "negative"));
  EXPECT_THAT(refusal(rows_of(3, 5, {}, {4, 0})), Names("5 elements", "input", "pitch", "4"));
  EXPECT_THAT(refusal(rows_of(3, 5, {}, {0, -6})), Names("pitch", "-6"));
  EXPECT_THAT(refusal(rows_of(std::int64_t{1} << 40, std::int64_t{1} << 40)), Names("no memory"));
  EXPECT_THAT(refusal(rows_of(std::int64_t{1} << 31, 5, {}, {std::int64_t{1} << 40, 0})), Names("no memory"));
  EXPECT_THAT(refusal(rows_of(3, 5, {.dtype = DType::i32})), Names("not i32"));
  EXPECT_THAT(refusal(rows_of(3, 5, {.result = DType::u8})), Names("not u8"));
  EXPECT_THAT(refusal(rows_of(3, 5, {.scale = kNan})), Names("scale=nan", "scale is nan"));
  EXPECT_THAT(refusal(rows_of(3, 5, {.scale = 1e39})), Names("scale=1e+39", "scale is 1e+39", "2^126"));
  EXPECT_EQ(refusal(rows_of(3, 5, {.dtype = DType::f64, .scale = 1e39})), "");

  Problem problem = rows_of(3, 5);
  problem.nan = NanPolicy::ignore;
  EXPECT_THAT(refusal(problem), Names("NaN", "cannot be ignored"));
  problem = rows_of(3, 5);
  problem.alignment = 16;
  EXPECT_THAT(refusal(problem), Names("rows", "4"));
  problem = rows_of(3, 5);
  problem.accumulator = DType::f64;
  EXPECT_THAT(refusal(problem), Names("accumulated", "f32"));
  problem = rows_of(3, 5);
  problem.extents[2] = 2;
  EXPECT_THAT(refusal(problem), Names("extents", "rows", "columns"));
  problem = rows_of(3, 5);
  problem.operation = 2;
  EXPECT_THAT(refusal(problem), Names("no operation", "2"));
  EXPECT_THAT(refusal(softmax_problem({}, SoftmaxShape::axis(std::int64_t{1} << 30, std::int64_t{1} << 30, 16))),
              Names("no memory"));
}

TEST(SoftmaxFamily, HasPoliciesForEveryShapeButNotThousands) {
  const std::array<std::array<std::int64_t, 2>, 16> shapes{{{1 << 23, 8},
                                                            {1 << 20, 64},
                                                            {1 << 16, 1 << 10},
                                                            {1 << 13, 1 << 13},
                                                            {1 << 10, 1 << 16},
                                                            {1 << 6, 1 << 20},
                                                            {4, 1 << 24},
                                                            {1, 1 << 30},
                                                            {1000003, 7},
                                                            {12289, 4097},
                                                            {31, 1048577},
                                                            {0, 0},
                                                            {1, 1},
                                                            {100000, 1},
                                                            {1 << 16, 1 << 17},
                                                            {5, 700}}};
  for (const auto& [rows, columns] : shapes) {
    for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
      for (const SoftmaxShape& shape : {SoftmaxShape::rows(rows, columns), SoftmaxShape::columns(rows, columns)}) {
        for (const std::uint32_t alignment : {2u, 16u}) {
          const Problem problem = softmax_problem({.dtype = dtype}, shape, alignment);
          EXPECT_GE(policies_of(problem, h100_facts()), 1u) << to_string(problem);
          EXPECT_LE(policies_of(problem, h100_facts()), 160u) << to_string(problem);
          EXPECT_GE(policies_of(problem, host_like_facts()), 1u) << to_string(problem);
        }
      }
      for (const SoftmaxShape& shape : {SoftmaxShape::rows(rows, columns), SoftmaxShape::columns(rows, columns)}) {
        for (const std::uint32_t alignment : {2u, 16u}) {
          const Problem exact =
              softmax_problem({.dtype = dtype, .numerics = Numerics::reproducible}, shape, alignment);
          EXPECT_GE(policies_of(exact, h100_facts()), 1u) << to_string(exact);
          EXPECT_LE(policies_of(exact, h100_facts()), 150u) << to_string(exact);
          EXPECT_GE(policies_of(exact, host_like_facts()), 1u) << to_string(exact);
        }
      }
    }
  }
}

/// The model ranks policies before it knows which are valid.
TEST(SoftmaxFamily, EveryPolicyHasAShapeWhetherItIsValidOrNot) {
  for (const Numerics numerics : {Numerics::fast, Numerics::reproducible})
    for (const SoftmaxShape& shape : {SoftmaxShape::rows(7, 700), SoftmaxShape::axis(2, 700, 5)}) {
      const Problem problem = softmax_problem({.numerics = numerics}, shape);
      for (const Policy& policy : problem.family->space().all())
        EXPECT_GE(problem.family->shape(problem, policy).tiles, 1) << problem.family->space().to_string(policy);
    }
}

TEST(SoftmaxFamily, LongRowsAreSharedByABlockAClusterOrManyBlocks) {
  const auto ways = [](const Problem& problem) {
    std::string found;
    for (const Policy& policy : problem.family->space().all()) {
      if (!reason_to_skip(problem, policy, h100_facts()).empty()) continue;
      const std::string text = problem.family->space().to_string(policy);
      const std::string way = text.substr(0, text.find(" block_threads"));
      if (!found.ends_with(way)) found += (found.empty() ? "" : ", ") + way;
    }
    return found;
  };
  EXPECT_EQ(ways(rows_of(1 << 23, 8)), "scope=warp threads_per_row=1, scope=warp threads_per_row=2");
  EXPECT_EQ(ways(rows_of(1 << 23, 8, {.dtype = DType::f16})), "scope=warp threads_per_row=1");
  const std::string block = "scope=block", cluster = ", scope=cluster cluster_blocks=";
  const std::string chunks = ", scope=grid combine=second_kernel", pipeline = ", scope=grid combine=pipeline",
                    held = ", scope=grid combine=held ring_kib=216 row_groups=";
  EXPECT_EQ(ways(rows_of(1 << 13, 1 << 13)), block + cluster + "2" + cluster + "4" + cluster + "8" + chunks);
  EXPECT_EQ(ways(rows_of(4, 1 << 24)), block + chunks + held + "1");
  EXPECT_EQ(ways(rows_of(1, 400000000)), block + chunks) << "little of it would be held";
  EXPECT_EQ(ways(rows_of(64, 1 << 20)), block + cluster + "16" + chunks + pipeline + held + "1");
  EXPECT_EQ(ways(rows_of(31, 1048577, {.dtype = DType::f16})),
            block + cluster + "8" + cluster + "16" + chunks + pipeline + held + "2");
  EXPECT_THAT(ways(rows_of(16, 3000017)), testing::EndsWith(held + "1"));
}

TEST(SoftmaxFamily, APipelineNeedsTheSameWorkspaceForAnyNumberOfRows) {
  const Candidate candidate{
      softmax_family()
          .space()
          .parse("scope=grid combine=pipeline block_threads=128 packs_per_thread=2 min_blocks=1")
          .value(),
      {2000}};
  const std::size_t few = softmax_family().workspace_bytes(rows_of(40, 1 << 21), candidate);
  EXPECT_EQ(few, softmax_family().workspace_bytes(rows_of(4000, 1 << 21), candidate));
  EXPECT_LE(few, kWorkspaceBytes);
}

TEST(SoftmaxFamily, APipelineHasNoMoreChunksThanItsTicketsCount) {
  const auto why = [](std::int64_t rows, std::int64_t columns) {
    const Policy policy = *softmax_family().space().parse(
        "scope=grid combine=pipeline block_threads=256 packs_per_thread=8 min_blocks=1");
    return softmax_family().is_valid(rows_of(rows, columns, {.dtype = DType::f16}), policy, h100_facts()).text();
  };
  EXPECT_EQ(why(1 << 20, 16), "");
  EXPECT_EQ(why(1 << 28, 16), "");
  EXPECT_THAT(why(std::int64_t{1} << 31, 16), Names("32 bits"));
  EXPECT_THAT(why(1 << 25, 1 << 20), Names("32 bits"));
}

/// Two groups of warps need room for a row each; one alone reads twice what has no room.
TEST(SoftmaxFamily, AGridHoldsWhatTheSharedMemoryOfAllSmsHolds) {
  const auto why = [](const Problem& problem, const DeviceFacts& facts, std::string_view ring = "216",
                      int row_groups = 1) {
    const std::string text = fmt::format(
        "scope=grid combine=held ring_kib={} row_groups={} block_threads=512 packs_per_thread=4 min_blocks=1", ring,
        row_groups);
    return softmax_family().is_valid(problem, softmax_family().space().parse(text).value(), facts).text();
  };
  EXPECT_EQ(why(rows_of(64, 1 << 20), h100_facts()), "");
  EXPECT_EQ(why(rows_of(16, 3000017, {.dtype = DType::f16}), h100_facts()), "");
  EXPECT_EQ(why(rows_of(10, 1 << 22), h100_facts()), "");
  EXPECT_EQ(why(rows_of(4, 1 << 24), h100_facts()), "") << "in part";
  EXPECT_EQ(why(rows_of(64, 1 << 20), h100_facts(), "32"), "");
  EXPECT_THAT(why(rows_of(64, 1 << 20), h100_facts(), "32", 2), Names("hold")) << "a row of each group";
  EXPECT_THAT(why(rows_of(1, std::int64_t{1} << 38), h100_facts()), Names("28 bits"));
  EXPECT_THAT(why(rows_of(64, 1 << 20, {.dtype = DType::f16, .result = DType::f32}), h100_facts()), Names("16 bytes"));
  EXPECT_THAT(why(rows_of(std::int64_t{1} << 40, 64), h100_facts()), Names("32 bits"));
  const SoftmaxSpec reproducible{.numerics = Numerics::reproducible};
  EXPECT_EQ(why(rows_of(64, 1 << 20, reproducible), h100_facts()), "");
  EXPECT_EQ(why(rows_of(4, 1 << 24, reproducible), h100_facts()), "") << "in part";
  EXPECT_EQ(why(rows_of(64, 1000001, reproducible), h100_facts()), "") << "rows begin anywhere";
  const SoftmaxSpec wider{.dtype = DType::f16, .result = DType::f32, .numerics = Numerics::reproducible};
  EXPECT_THAT(why(rows_of(64, 1 << 20, wider), h100_facts()), Names("16 bytes"));
  EXPECT_THAT(why(rows_of(20000, 1 << 20, reproducible), h100_facts()), Names("second sum"));
  EXPECT_THAT(why(rows_of(1, std::int64_t{1} << 38, reproducible), h100_facts()), Names("hold")) << "sums of its tree";
  DeviceFacts old = h100_facts();
  old.compute_capability = 80;
  EXPECT_THAT(why(rows_of(64, 1 << 20), old), Names("bulk"));
}

TEST(SoftmaxFamily, AGridThatHoldsRowsIsCooperativeAndHasABlockOnEachSm) {
  const Problem problem = rows_of(64, 1 << 20);
  const Policy policy =
      problem.family->space()
          .parse("scope=grid combine=held ring_kib=216 row_groups=1 block_threads=512 packs_per_thread=4 min_blocks=1")
          .value();
  const WorkShape shape = problem.family->shape(problem, policy);
  EXPECT_TRUE(shape.cooperative);
  EXPECT_FALSE(shape.dependent_launch);
  const DeviceFacts facts = h100_facts();
  const std::vector<Geometry> grids = geometries(facts, shape, 1);
  ASSERT_EQ(grids.size(), 1u);
  EXPECT_EQ(grids[0].max_blocks, facts.sm_count);
  EXPECT_TRUE(may_launch(facts, problem, {policy, grids[0]}));
  EXPECT_FALSE(may_launch(facts, problem, {policy, {facts.sm_count / 2}})) << "others would hold too much";
  EXPECT_FALSE(may_launch(facts, problem, {policy, {2 * facts.sm_count}})) << "not all would be resident";
  LaunchList launches;
  problem.family->encode(problem, {policy, grids[0]}, std::array<void*, 2>{}, nullptr, launches);
  ASSERT_EQ(launches.end() - launches.begin(), 1);
  EXPECT_TRUE(launches.begin()->cooperative);
  EXPECT_EQ(launches.begin()->grid.x, static_cast<unsigned>(facts.sm_count));
}

TEST(SoftmaxFamily, PartialResultsOfChunksFitTheWorkspaceAtEveryExtentOfAClass) {
  constexpr std::int64_t kBlocks = 4096;
  std::size_t most_bytes = 0;
  for (const SoftmaxShape& shape :
       {SoftmaxShape::rows(1, 1 << 26), SoftmaxShape::rows(11, 1 << 26), SoftmaxShape::rows(1 << 16, 1 << 14),
        SoftmaxShape::columns(1 << 20, 8), SoftmaxShape::columns(1 << 17, 5000),
        SoftmaxShape::columns(1 << 14, 1 << 15), SoftmaxShape::axis(90, 1 << 14, 90)}) {
    for (const DType dtype : {DType::f16, DType::f64}) {
      const Problem problem = softmax_problem({.dtype = dtype}, shape, 2);
      const auto ranges = size_ranges(problem.extents);
      Problem smallest = problem;
      Problem largest = problem;
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        smallest.extents[i] = ranges[i].first;
        largest.extents[i] = ranges[i].last;
      }
      for (const Policy& policy : problem.family->space().all()) {
        if (!reason_to_skip(problem, policy, h100_facts()).empty()) continue;
        for (const Problem& each : {smallest, problem, largest}) {
          const std::size_t bytes = problem.family->workspace_bytes(each, {policy, {kBlocks}});
          EXPECT_LE(bytes, kWorkspaceBytes) << to_string(each) << problem.family->space().to_string(policy);
          most_bytes = std::max(most_bytes, bytes);
        }
      }
    }
  }
  EXPECT_GT(most_bytes, kWorkspaceBytes / 2) << "room is left unused";
}

TEST(SoftmaxFamily, AlignmentIsThatOfEveryRow) {
  EXPECT_EQ(rows_of(10, 8).alignment, 16u);
  EXPECT_EQ(rows_of(10, 7).alignment, 4u);
  EXPECT_EQ(rows_of(1, 7).alignment, 16u) << "there is only one row";
  EXPECT_EQ(rows_of(10, 7, {}, {8, 12}).alignment, 16u);
  EXPECT_EQ(rows_of(10, 7, {}, {8, 10}).alignment, 4u);
  EXPECT_EQ(rows_of(10, 12, {.dtype = DType::f16}).alignment, 2u) << "packs have eight elements";
  EXPECT_EQ(rows_of(10, 12, {.dtype = DType::f16, .result = DType::f32}).alignment, 16u) << "packs have four elements";
  EXPECT_EQ(softmax_problem({}, SoftmaxShape::rows(10, 8), 8).alignment, 4u);
  EXPECT_EQ(softmax_problem({}, SoftmaxShape::columns(10, 6)).alignment, 8u) << "columns have packs of any width";
  EXPECT_EQ(softmax_problem({.dtype = DType::f16}, SoftmaxShape::columns(10, 12)).alignment, 8u);
}

/// Rows of an odd length have aligned packs where a thread's are a multiple of a pack's elements apart.
TEST(SoftmaxFamily, ColumnsOfRowsThatBeginAnywhereHaveWholePacks) {
  const Problem odd = softmax_problem({.dtype = DType::f16}, SoftmaxShape::columns(8192, 5001));
  const Problem even = softmax_problem({.dtype = DType::f16}, SoftmaxShape::columns(8192, 5000));
  ASSERT_EQ(odd.alignment, 2u);
  ASSERT_EQ(even.alignment, 16u);
  const KernelFamily& family = *odd.family;
  const auto policy = [&](std::string_view lanes, std::string_view staging) {
    return *family.space().parse(fmt::format(
        "scope=block lanes={} block_threads=256 packs_per_thread=2 staging={} min_blocks=unset", lanes, staging));
  };
  const auto why = [&](const Problem& problem, std::string_view lanes) {
    return family.is_valid(problem, policy(lanes, "phase_matched"), h100_facts()).text();
  };
  const WorkShape of_odd = family.shape(odd, policy("16", "phase_matched"));
  const WorkShape of_even = family.shape(even, policy("16", "direct"));
  EXPECT_EQ(of_odd.bytes_in_flight_per_block * 16, of_even.bytes_in_flight_per_block * 15) << "a pack narrower";
  EXPECT_GT(of_odd.tiles, of_even.tiles);
  EXPECT_GT(of_odd.traffic, of_even.traffic) << "tiles share sectors";
  EXPECT_EQ(why(odd, "32"), "");
  EXPECT_THAT(why(even, "32"), Names("every row"));
  EXPECT_EQ(why(softmax_problem({.dtype = DType::f64}, SoftmaxShape::columns(8192, 5001)), "128"), "");
  EXPECT_THAT(why(softmax_problem({}, SoftmaxShape::columns(8192, 5001)), "128"), Names("alike"))
      << "a thread has every second row";
  const SoftmaxSpec reproducible{.dtype = DType::f16, .numerics = Numerics::reproducible};
  EXPECT_THAT(why(softmax_problem(reproducible, SoftmaxShape::columns(8192, 5001)), "32"), Names("reproducible"));
}

TEST(SoftmaxFamily, VerifiesAWidthLessWithThePitchKeptAndAScale) {
  const std::vector<Problem> rows = softmax_family().verifier().verified_problems(rows_of(10, 8));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].extents, (Extents{10, 7, 1}));
  EXPECT_EQ(rows[1].pitches, (Pitches{8, 8}));
  EXPECT_EQ(rows[2].extents, (Extents{9, 8, 1}));
  EXPECT_EQ(rows[3].scalars[0], -0.5);
  const Problem columns = softmax_problem({}, SoftmaxShape::axis(2, 10, 12));
  EXPECT_EQ(columns.family->verifier().verified_problems(columns)[1].extents, (Extents{2, 10, 8})) << "a pack less";
}

TEST(SoftmaxFamily, VerifiesPartsInOrderAndInsideTheOutput) {
  for (const SoftmaxShape& shape :
       {SoftmaxShape::rows(1000003, 7), SoftmaxShape::rows(4, 1 << 24), SoftmaxShape::rows(3, 5, {9, 9}),
        SoftmaxShape::rows(1 << 16, 1 << 10), SoftmaxShape::axis(3, 40, 17), SoftmaxShape::columns(1 << 20, 64),
        SoftmaxShape::columns(2, 1 << 20), SoftmaxShape::rows(0, 5), SoftmaxShape::axis(2, 0, 5)}) {
    const Problem problem = softmax_problem({}, shape);
    const BufferSpec out = problem.family->buffers(problem)[1];
    std::int64_t after = 0;
    std::int64_t count = 0;
    for (const ElementRange& part : problem.family->verifier().verified_parts(problem, 1)) {
      EXPECT_GE(part.first, after) << to_string(problem);
      EXPECT_GT(part.count, 0);
      after = part.first + part.count;
      count += part.count;
    }
    EXPECT_LE(count, 1 << 17) << to_string(problem);
    EXPECT_EQ(after, out.elements) << "the last element is always among them: " << to_string(problem);
  }
}

/// Returns what the reference says of one row of floats.
std::string verdict(const std::vector<float>& in, const std::vector<float>& out, double scale, bool is_log) {
  const softmax_reference::Computation computation{.dtype = DType::f32,
                                                   .result = DType::f32,
                                                   .accumulator = DType::f32,
                                                   .scale = scale,
                                                   .is_log = is_log,
                                                   .chain = 50};
  const std::array<ElementRange, 1> parts{{{0, static_cast<std::int64_t>(out.size())}}};
  const softmax_reference::Line line{.elements = static_cast<std::int64_t>(out.size())};
  return softmax_reference::verify(computation, std::as_bytes(std::span(in)), parts, [&](std::int64_t) { return line; },
                                   std::as_bytes(std::span(out)));
}

TEST(SoftmaxReference, AcceptsWhatIsRightAndNothingElse) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kFloatNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(verdict({0, 0}, {0.5f, 0.5f}, 1, false), "");
  EXPECT_EQ(verdict({0, 1}, {0.26894142f, 0.73105858f}, 1, false), "");
  EXPECT_EQ(verdict({0, 1}, {0.73105858f, 0.26894142f}, -1, false), "");
  EXPECT_EQ(verdict({0, 0.5f}, {0.26894142f, 0.73105858f}, 2, false), "");
  EXPECT_THAT(verdict({0, 1}, {0.26894142f, 0.73110f}, 1, false), Names("element", "1"));
  EXPECT_THAT(verdict({0, 1}, {0.268955f, 0.73105858f}, 1, false), Names("element", "0"));
  EXPECT_EQ(verdict({0, 1000}, {-1000, 0}, 1, true), "");
  EXPECT_NE(verdict({0, 1000}, {-1000.01f, 0}, 1, true), "");
  EXPECT_EQ(verdict({3e38f, -3e38f}, {1, 0}, 1, false), "") << "their difference overflows";
  EXPECT_EQ(verdict({-kInfinity, 1}, {0, 1}, 1, false), "");
  EXPECT_EQ(verdict({-kInfinity, 1}, {-kInfinity, 0}, 1, true), "");
  EXPECT_EQ(verdict({-kInfinity, 1}, {0, 1}, 0, false), "") << "a scale of 0 keeps a mask";
  EXPECT_EQ(verdict({-7, 1}, {0.5f, 0.5f}, 0, false), "");
  for (const std::vector<float>& row : {std::vector{-kInfinity, -kInfinity}, {kInfinity, 1}, {kFloatNan, 1}}) {
    EXPECT_EQ(verdict(row, {kFloatNan, kFloatNan}, 1, false), "");
    EXPECT_NE(verdict(row, {0.5f, 0.5f}, 1, false), "");
  }
  EXPECT_EQ(verdict({kInfinity, 1}, {0, 1}, -1, false), "");
  EXPECT_EQ(verdict({-kInfinity, 1}, {kFloatNan, kFloatNan}, -1, false), "");
}

TEST(SoftmaxReference, SumsWholePeriodsAtOnceAndTheRestOneByOne) {
  // Two elements over and over in a row of five: weights 1, e, 1, e, 1.
  const std::vector<float> in{0, 1};
  const softmax_reference::Computation computation{
      .dtype = DType::f32, .result = DType::f32, .accumulator = DType::f32, .chain = 50};
  const std::array<ElementRange, 1> parts{{{0, 5}}};
  const auto e = static_cast<float>(std::exp(1.0));
  const float sum = 3 + 2 * e;
  std::vector<float> out{1 / sum, e / sum, 1 / sum, e / sum, 1 / sum};
  const auto line_of = [](std::int64_t) { return softmax_reference::Line{.elements = 5}; };
  const auto verify = [&] {
    return softmax_reference::verify(computation, std::as_bytes(std::span(in)), parts, line_of,
                                     std::as_bytes(std::span(out)));
  };
  EXPECT_EQ(verify(), "");
  std::swap(out[0], out[1]);
  EXPECT_NE(verify(), "");
}

}  // namespace
}  // namespace hone
