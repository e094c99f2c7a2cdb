// The families transpose and copy as descriptions: problems, policies, verification, and what a GPU's compiler makes of
// them.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include <hone/copy.h>
#include <hone/error.h>
#include <hone/sdk/gpu_kernel.h>
#include <hone/transpose.h>

#include "runtime/choose/compiled.h"
#include "runtime/families/moved_elements.h"
#include "runtime/families/transpose/transpose_policy.h"
#include "runtime/search/candidates.h"
#include "runtime/search/model.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"
#include "tests/support/share.h"

namespace hone {
namespace {

using test::Names;

Problem matrix(std::size_t element_bytes, std::int64_t rows, std::int64_t columns, bool in_place = false) {
  return transpose_problem({.element_bytes = element_bytes, .rows = rows, .columns = columns}, kMaxAlignment, in_place);
}

/// Shapes of every kind: both sides long, one short, either way round, and rows at odd addresses.
std::vector<Problem> problems_of_every_kind() {
  std::vector<Problem> problems;
  for (const std::size_t bytes : {1, 2, 4, 8, 16}) {
    for (const auto& [rows, columns] : {std::pair{8192, 8192}, {1 << 23, 8}, {1 << 20, 64}, {64, 1 << 20}, {4, 1 << 24},
                                        {12289, 4097}, {1000003, 7}, {31, 1048577}})
      problems.push_back(matrix(bytes, rows, columns));
    problems.push_back(matrix(bytes, 8192, 8192, true));
    problems.push_back(matrix(bytes, 8193, 8193, true));
    problems.push_back(copy_problem({.element_bytes = bytes, .columns = 1 << 28}));
    problems.push_back(
        copy_problem({.element_bytes = bytes, .rows = 8192, .columns = 8190, .in_pitch = 8191, .out_pitch = 8192}));
  }
  return problems;
}

TEST(TransposeProblem, RowsDecideHowTheyCanBeAligned) {
  EXPECT_EQ(matrix(4, 8192, 8192).alignment, 16u);
  EXPECT_EQ(matrix(4, 8192, 8190).alignment, 8u);
  EXPECT_EQ(matrix(4, 8190, 8192).alignment, 8u);
  EXPECT_EQ(matrix(2, 12289, 4097).alignment, 2u);
  EXPECT_EQ(matrix(16, 12289, 4097).alignment, 16u);
  EXPECT_EQ(transpose_problem({.rows = 6, .columns = 7, .in_pitch = 8, .out_pitch = 8}).alignment, 16u);
  EXPECT_EQ(transpose_problem({.rows = 6, .columns = 7, .in_pitch = 8, .out_pitch = 8}, 4).alignment, 4u);
}

TEST(TransposeProblem, ElementsAreMovedByTheirSize) {
  EXPECT_EQ(matrix(2, 3, 5).dtype, DType::u16);
  EXPECT_EQ(matrix(16, 3, 5).dtype, DType::u64);
  EXPECT_NE(matrix(16, 3, 5).operation, matrix(8, 3, 5).operation);
  Problem problem = matrix(4, 3, 5);
  problem.dtype = DType::f32;
  EXPECT_THAT(problem.family->refuse(problem), Names("ask", "u32", "f32"));
}

TEST(TransposeProblem, APitchOfWhichRowsDoNotLieAsAlignedIsRefused) {
  Problem problem = matrix(4, 8192, 8191);
  EXPECT_EQ(problem.family->refuse(problem), "");
  problem.alignment = 16;
  EXPECT_THAT(problem.family->refuse(problem), Names("rows", "4 bytes", "not 16"));
}

TEST(TransposeProblem, OnlySquareOnesAreInPlace) {
  EXPECT_EQ(matrix(4, 50, 50, true).family->refuse(matrix(4, 50, 50, true)), "");
  EXPECT_THAT(matrix(4, 50, 51, true).family->refuse(matrix(4, 50, 51, true)), Names("square"));
}

TEST(CopyProblem, RowsThatLieSideBySideAreOneRow) {
  EXPECT_EQ(copy_problem({.rows = 30, .columns = 70}).extents, (Extents{1, 2100, 1}));
  EXPECT_EQ(copy_problem({.element_bytes = 16, .rows = 30, .columns = 70}).extents, (Extents{1, 4200, 1}));
  const Problem pitched = copy_problem({.rows = 30, .columns = 70, .in_pitch = 71});
  EXPECT_EQ(pitched.extents, (Extents{30, 70, 1}));
  EXPECT_EQ(pitched.pitches, (Pitches{71, 0}));
  EXPECT_EQ(pitched.alignment, 4u);
  EXPECT_EQ(copy_problem({.rows = 30, .columns = 70, .in_pitch = 71, .out_pitch = 75}).alignment, 16u);
  const Problem negative = copy_problem({.rows = -30, .columns = -70});
  EXPECT_THAT(negative.family->refuse(negative), Names("no extent", "negative"));
}

TEST(MovedFamilies, OfferEnoughPoliciesAndNotThousands) {
  for (const Problem& problem : problems_of_every_kind()) {
    ASSERT_EQ(problem.family->refuse(problem), "") << to_string(problem);
    const bool in_place = problem.family == &transpose_family() && problem.operation % 2 == 1;
    EXPECT_GE(allowed_policies(problem, h100_facts()).size(), in_place ? 2u : 10u) << to_string(problem);
    EXPECT_LE(allowed_policies(problem, h100_facts()).size(), 150u) << to_string(problem);
  }
}

TEST(MovedFamilies, LeaveAPolicyForEveryShape) {
  const auto has_policy = [](const Problem& problem) {
    const std::vector<Policy> all = problem.family->space().all();
    return std::any_of(all.begin(), all.end(), [&](const Policy& policy) {
      return reason_to_skip(problem, policy, h100_facts()).empty();
    });
  };
  std::vector<std::int64_t> sides{std::int64_t{1} << 33};
  for (int exponent = 0; exponent < 15; ++exponent) sides.push_back(1 << exponent);
  for (const std::size_t bytes : {1, 2, 4, 8, 16})
    for (const std::uint32_t alignment : {1u, 8u, kMaxAlignment})
      for (const std::int64_t rows : sides)
        for (const std::int64_t columns : sides) {
          const std::int64_t in_pitch = (columns + 15) / 16 * 16, out_pitch = (rows + 15) / 16 * 16;
          const TransposeSpec spec{.element_bytes = bytes, .rows = rows, .columns = columns, .batch = 3,
                                   .in_pitch = in_pitch, .out_pitch = out_pitch};
          const auto of_elements = std::max(alignment, static_cast<std::uint32_t>(std::min<std::size_t>(bytes, 8)));
          for (const bool in_place : {false, true}) {
            if (in_place && rows != columns) continue;
            const Problem problem = transpose_problem(spec, of_elements, in_place);
            EXPECT_TRUE(has_policy(problem)) << to_string(problem);
          }
        }
}

/// How many of a problem's policies have this staging.
std::ptrdiff_t policies_with(Staging staging, const Problem& problem) {
  const std::vector<Policy> policies = allowed_policies(problem, h100_facts());
  return std::count_if(policies.begin(), policies.end(),
                       [&](const Policy& policy) { return policy.as<TransposePolicy>().staging == staging; });
}

TEST(MovedFamilies, OnlyRowsThatAreNotAlignedAreShifted) {
  for (const std::size_t bytes : {1, 2, 4, 8}) {
    EXPECT_GE(policies_with(Staging::shifted, matrix(bytes, 12289, 4097)), 8) << bytes;
    EXPECT_EQ(policies_with(Staging::shifted, matrix(bytes, 12288, 4096)), 0) << bytes;
    EXPECT_EQ(policies_with(Staging::shifted, matrix(bytes, 1000003, 7)), 0) << bytes;
    EXPECT_EQ(policies_with(Staging::shifted, matrix(bytes, 8193, 8193, true)), 0) << bytes;
  }
  EXPECT_EQ(policies_with(Staging::shifted, matrix(16, 12289, 4097)), 0);
}

TEST(MovedFamilies, OnlyShortRowsThatAreNotAlignedAreMovedInStrips) {
  for (const std::size_t bytes : {1, 2, 4, 8}) {
    EXPECT_GE(policies_with(Staging::strips, matrix(bytes, 7, 1048577)), 3) << bytes;
    EXPECT_GE(policies_with(Staging::strips, matrix(bytes, 1000003, 7)), 3) << bytes;
    EXPECT_EQ(policies_with(Staging::strips, matrix(bytes, 12289, 4097)), 0) << bytes;
    EXPECT_EQ(policies_with(Staging::strips, matrix(bytes, 16, 1 << 20)), 0) << bytes;
  }
  for (const std::size_t bytes : {1, 2, 4})
    EXPECT_GE(policies_with(Staging::strips, matrix(bytes, 31, 1048577)), 3) << bytes;
  EXPECT_EQ(policies_with(Staging::strips, matrix(16, 31, 1048577)), 0);
}

TEST(MovedFamilies, VectorsAreExpectedToBeFasterThanSingleBytesAndPairs) {
  const auto first = [](const Problem& problem) {
    return rank_policies(h100_facts(), problem).policies.at(0).policy.as<TransposePolicy>().staging;
  };
  for (const std::size_t bytes : {1, 2}) {
    EXPECT_EQ(first(matrix(bytes, 31, 1048577)), Staging::strips);
    EXPECT_EQ(first(matrix(bytes, 1048577, 31)), Staging::strips);
    EXPECT_EQ(first(matrix(bytes, 12289, 4097)), Staging::shifted);
  }
  EXPECT_EQ(first(matrix(2, 8192, 8192)), Staging::shared) << "rows are aligned";
  EXPECT_EQ(first(matrix(2, 1000, 33)), Staging::shared) << "too small for bandwidth to matter";
}

TEST(MovedFamilies, TilesAreExpectedToFollowEachOtherAlongTheShortSide) {
  const auto first = [](const Problem& problem) {
    return rank_policies(h100_facts(), problem).policies.at(0).policy.as<TransposePolicy>().order;
  };
  using Order = TransposePolicy::Order;
  EXPECT_EQ(first(matrix(2, 2000, 50257)), Order::columns);
  EXPECT_EQ(first(matrix(2, 50257, 2000)), Order::rows);
  EXPECT_EQ(first(matrix(4, 1024, 65536)), Order::columns);
  EXPECT_EQ(first(matrix(4, 65536, 1024)), Order::rows);
}

TEST(MovedFamilies, OnlyTilesBesideOthersFetchTheLinesThatTheyShare) {
  const auto shifted = [](const Problem& problem, std::string_view one_across) {
    const std::vector<Policy> policies = allowed_policies(problem, h100_facts());
    return std::count_if(policies.begin(), policies.end(), [&](const Policy& policy) {
      return policy.as<TransposePolicy>().staging == Staging::shifted &&
             problem.family->unit(problem, policy).source.find(one_across) != std::string::npos;
    });
  };
  EXPECT_GT(shifted(matrix(2, 12289, 4097), "false, Index>"), 0);
  EXPECT_EQ(shifted(matrix(2, 12289, 4097), "true, Index>"), 0);
  EXPECT_GT(shifted(matrix(4, 300007, 77), "true, Index>"), 0);
}

TEST(MovedFamilies, ThePoliciesAreThoseOfAllThatShareAWinner) {
  for (const Problem& problem : {matrix(4, 1 << 20, 8), matrix(2, 5, 1 << 20), matrix(4, 8192, 8192)}) {
    Problem other = problem;
    const std::array<SizeRange, 3> sizes = size_ranges(problem.extents);
    other.extents = {1, sizes[1].last, sizes[2].first};
    other.pitches = {(other.extents[2] + 3) / 4 * 4, (other.extents[1] + 3) / 4 * 4};
    for (const Policy& policy : problem.family->space().all()) {
      EXPECT_EQ(reason_to_skip(problem, policy, h100_facts()),
                reason_to_skip(other, policy, h100_facts()));
      if (!reason_to_skip(problem, policy, h100_facts()).empty()) continue;
      EXPECT_TRUE(problem.family->unit(problem, policy).has_code_of(other.family->unit(other, policy)));
    }
  }
}

TEST(MovedFamilies, ABlockForEveryTileIsAGeometryAndNothingIsCombined) {
  const Problem problem = matrix(4, 8192, 8192);
  const WorkShape shape = problem.family->shape(problem, allowed_policies(problem, h100_facts()).front());
  const std::vector<Geometry> all = geometries(h100_facts(), shape, 8);
  EXPECT_GE(all.back().max_blocks, shape.tiles);
  WorkShape combining = shape;
  combining.uses_last_block_ticket = true;
  EXPECT_LT(predict(h100_facts(), shape, 1 << 29, 8, all.back()).us(),
            predict(h100_facts(), combining, 1 << 29, 8, all.back()).us());
}

TEST(MovedFamilies, LargeOutputsAreCheckedInPartsThatReachBothEnds) {
  const std::int64_t elements = (std::int64_t{1} << 33) + 5;
  const auto checked_parts = [](std::int64_t columns) {
    const Problem copied = copy_problem({.element_bytes = 1, .rows = 1, .columns = columns});
    return copied.family->verifier().verified_parts(copied, 1);
  };
  const std::vector<ElementRange> parts = checked_parts(elements);
  std::int64_t end = 0, checked = 0;
  for (const ElementRange& part : parts) {
    EXPECT_GE(part.first, end);
    end = part.first + part.count;
    checked += part.count;
  }
  EXPECT_EQ(parts.front().first, 0);
  EXPECT_EQ(end, elements);
  EXPECT_LE(checked, 1 << 18);
  EXPECT_EQ(checked_parts(100), (std::vector<ElementRange>{{0, 100}}));
}

TEST(MovedFamilies, VerificationFindsOneWrongElementAndIgnoresWhatLiesBetweenRows) {
  const Problem problem = transpose_problem({.element_bytes = 16, .rows = 3, .columns = 2, .out_pitch = 4});
  const std::vector<std::vector<std::byte>> patterns{problem.family->verifier().input_pattern(problem, 0, "random")};
  std::vector<std::vector<std::byte>> outputs(1, std::vector<std::byte>(std::size_t{7} * 16));
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 2; ++column)
      std::copy_n(patterns[0].begin() + static_cast<std::ptrdiff_t>((row * 2 + column) * 16), 16,
                  outputs[0].begin() + static_cast<std::ptrdiff_t>((column * 4 + row) * 16));
  EXPECT_EQ(problem.family->verifier().verify(problem, {}, patterns, outputs), "");
  outputs[0][3 * 16] ^= std::byte{1};  // between the rows
  EXPECT_EQ(problem.family->verifier().verify(problem, {}, patterns, outputs), "");
  outputs[0][4 * 16 + 9] ^= std::byte{1};
  EXPECT_THAT(problem.family->verifier().verify(problem, {}, patterns, outputs),
              Names("element", "9", "output", "0x"));
}

/// One policy of every other problem. (All of 700 that were tried had 8 bytes at the most.)
TEST(MovedFamilies, CompileForAGpuWithoutSpills) {
  std::size_t turn = 0;
  for (const Problem& problem : problems_of_every_kind()) {
    if (!test::in_share(turn++, 2)) continue;
    const std::vector<Policy> policies = allowed_policies(problem, h100_facts());
    const Unit unit = unit_of(problem, policies[turn * 7 % policies.size()]);
    try {
      EXPECT_LE(gpu_resources(unit, "sm_90").local_bytes, 8) << unit.name;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) GTEST_SKIP() << error.what();
      ADD_FAILURE() << unit.name << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace hone
