// The families reduce_rows and reduce_columns, as far as nothing has to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include <hone/reduce_axis.h>

#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/reduce_axis/axis_family.h"
#include "runtime/families/reduce_axis/columns_layout.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/search/candidates.h"
#include "tests/runtime/families/support.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

Problem rows(std::int64_t rows, std::int64_t columns, std::int64_t pitch = 0, std::uint32_t alignment = kMaxAlignment) {
  return reduce_rows_problem({}, {rows, columns, pitch}, alignment);
}

Problem columns(const ColumnsShape& shape, std::uint32_t alignment = kMaxAlignment) {
  return reduce_columns_problem({}, shape, alignment);
}

/// From many short rows to few long ones, aligned and not; each both ways.
std::vector<Problem> shapes_of(const ReduceSpec& spec) {
  std::vector<Problem> problems;
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1 << 24, 1},
                                                                               {1 << 24, 2},
                                                                               {1 << 24, 64},
                                                                               {1 << 23, 8},
                                                                               {1 << 20, 64},
                                                                               {1 << 16, 1 << 10},
                                                                               {1 << 13, 1 << 13},
                                                                               {1 << 10, 1 << 16},
                                                                               {1 << 6, 1 << 20},
                                                                               {4, 1 << 24},
                                                                               {4, 1 << 28},
                                                                               {1000003, 7},
                                                                               {12289, 4097},
                                                                               {31, 1048577},
                                                                               {100, 100},
                                                                               {1, 1},
                                                                               {3, 5},
                                                                               {1, 1 << 20},
                                                                               {5, 0}}) {
    problems.push_back(reduce_rows_problem(spec, {m, n}));
    problems.push_back(reduce_columns_problem(spec, {.reduced = m, .inner = n}));
  }
  for (const ColumnsShape& shape :
       {ColumnsShape{1 << 20, 8, 3}, ColumnsShape{1000, 100, 100}, ColumnsShape{1 << 14, 64, 64},
        ColumnsShape{7, 1 << 20, 3}, ColumnsShape{2, 3, 1 << 24}, ColumnsShape{100, 50, 3, 4}})
    problems.push_back(reduce_columns_problem(spec, shape));
  return problems;
}

TEST(ReduceRowsProblem, IsAlignedWhereAllRowsAre) {
  EXPECT_EQ(rows(10, 8).alignment, 16u);
  EXPECT_EQ(rows(10, 8, 0, 8).alignment, 4u);
  EXPECT_EQ(rows(10, 7).alignment, 4u);
  EXPECT_EQ(rows(10, 7, 8).alignment, 16u);
  EXPECT_EQ(rows(10, 8, 9).alignment, 4u);
  EXPECT_EQ(columns({.reduced = 9, .inner = 12}).alignment, 16u);
  EXPECT_EQ(columns({.reduced = 9, .inner = 13}).alignment, 4u);
}

TEST(ReduceRowsProblem, APitchWithoutGapsIsNone) {
  EXPECT_EQ(rows(10, 8, 8).pitches[0], 0);
  EXPECT_EQ(rows(10, 8, 9).pitches[0], 9);
  EXPECT_EQ(columns({.reduced = 10, .inner = 8, .pitch = 8}).pitches[0], 0);
}

TEST(ReduceColumnsProblem, AnInnerExtentOfOneMakesRows) {
  EXPECT_EQ(columns({.outer = 5, .reduced = 7, .inner = 1}).family, &reduce_rows_family());
  EXPECT_EQ(columns({.outer = 5, .reduced = 7, .inner = 1, .pitch = 2}).family, &reduce_columns_family());
  EXPECT_EQ(columns({.outer = 1, .reduced = kLargest, .inner = 1}).family, &reduce_columns_family()) << "refused";
}

TEST(ReduceAxisFamilies, RefuseShapesByName) {
  EXPECT_THAT(reduce_rows_family().refuse(rows(-1, 5)), Names("no extent", "negative"));
  EXPECT_THAT(reduce_rows_family().refuse(rows(5, 6, 5)), Names("6 elements", "input", "pitch", "5"));
  EXPECT_THAT(reduce_rows_family().refuse(rows(5, 6, -7)), Names("pitch", "-7"));
  EXPECT_THAT(reduce_rows_family().refuse(rows(kLargest, kLargest)), Names("no memory"));
  EXPECT_THAT(reduce_rows_family().refuse(rows(2, 1, kLargest)), Names("no memory"));
  EXPECT_THAT(reduce_rows_family().refuse(rows(kLargest, 0)), Names("no memory"));
  EXPECT_THAT(reduce_columns_family().refuse(columns({1, 5, 6, 5})), Names("rows", "overlap"));
  EXPECT_THAT(reduce_columns_family().refuse(columns({kLargest, 2, 2})), Names("no memory"));
  Problem with_output_pitch = rows(5, 6);
  with_output_pitch.pitches[1] = 2;
  EXPECT_THAT(reduce_rows_family().refuse(with_output_pitch), Names("output", "2"));
  Problem misaligned = rows(5, 6);
  misaligned.alignment = 16;
  EXPECT_THAT(reduce_rows_family().refuse(misaligned), Names("rows", "8 bytes", "not 16"));
  EXPECT_EQ(reduce_rows_family().refuse(rows(0, 6)), "");
  EXPECT_EQ(reduce_columns_family().refuse(columns({1 << 20, 1 << 10, 1 << 10})), "");
}

TEST(ReduceAxisFamilies, RefuseOperationsByName) {
  const auto refusal = [](ReduceOp op, DType dtype, const RowsShape& shape) {
    return reduce_rows_family().refuse(reduce_rows_problem({.op = op, .dtype = dtype}, shape));
  };
  EXPECT_THAT(refusal(ReduceOp::dot, DType::f32, {5, 5}), Names("call", "tuned_dot()"));
  EXPECT_THAT(refusal(ReduceOp::logsumexp, DType::u8, {5, 5}), Names("not defined"));
  EXPECT_THAT(refusal(ReduceOp::argmax, DType::f32, {5, 0}), Names("argmax", "no elements"));
  EXPECT_EQ(refusal(ReduceOp::argmax, DType::f32, {0, 0}), "");
  EXPECT_EQ(refusal(ReduceOp::sum, DType::f32, {5, 0}), "");
}

TEST(ReduceAxisFamilies, EveryShapeHasPoliciesButNotTooMany) {
  for (const ReduceSpec& spec : {ReduceSpec{}, ReduceSpec{.dtype = DType::f16}, ReduceSpec{.dtype = DType::f64},
                                 ReduceSpec{.op = ReduceOp::mean_variance, .dtype = DType::u8},
                                 ReduceSpec{.op = ReduceOp::logsumexp, .dtype = DType::bf16},
                                 ReduceSpec{.numerics = Numerics::reproducible},
                                 ReduceSpec{.op = ReduceOp::logsumexp, .dtype = DType::f16,
                                            .numerics = Numerics::reproducible}})
    for (const Problem& problem : shapes_of(spec))
      for (const DeviceFacts& facts : {h100_facts(), two_core_host_facts()}) {
        const std::size_t policies = rank_policies(facts, problem).policies.size();
        EXPECT_GE(policies, spec.is_reproducible() ? 1u : 2u) << to_string(problem);
        EXPECT_LE(policies, facts.kind == "cuda" ? 170u : 200u) << to_string(problem);
      }
}

/// In every class, wherever in it the row is: a class reaches over an octave.
TEST(ReduceAxisFamilies, ShortReproducibleRowsAreReducedByWarps) {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const std::int64_t columns : {8, 24, 32, 48, 64, 88, 96, 128, 200, 256, 500}) {
      const ReduceSpec spec{.dtype = dtype, .numerics = Numerics::reproducible};
      const auto ranked = rank_policies(h100_facts(), reduce_rows_problem(spec, {1 << 20, columns})).policies;
      EXPECT_TRUE(std::any_of(ranked.begin(), ranked.end(), [](const RankedPolicy& each) {
        return each.policy.as<RowsPolicy>().scope == Scope::warp;
      })) << columns;
    }
}

TEST(ReduceAxisFamilies, AllShapesOfASizeClassShareTheUnitAndTheBoundOfTheWorkspace) {
  std::vector<Problem> problems = shapes_of({.op = ReduceOp::minmax});
  for (const Problem& problem : shapes_of({.numerics = Numerics::reproducible})) problems.push_back(problem);
  for (const Problem& problem : problems) {
    Problem largest = problem;
    Problem smallest = problem;
    const std::array<SizeRange, 3> ranges = size_ranges(problem.extents);
    const bool is_matrix = problem.family == &reduce_rows_family();
    for (std::size_t i = 0; i < (is_matrix ? 2u : 3u); ++i) {
      smallest.extents[i] = ranges[i].first;
      largest.extents[i] = ranges[i].last;
    }
    for (const RankedPolicy& ranked : rank_policies(h100_facts(), problem).policies) {
      const Candidate candidate{ranked.policy, {264}};
      EXPECT_TRUE(problem.family->unit(smallest, ranked.policy)
                      .has_code_of(problem.family->unit(largest, ranked.policy)));
      EXPECT_EQ(problem.family->workspace_bytes(smallest, candidate),
                problem.family->workspace_bytes(largest, candidate));
    }
  }
}

TEST(ReduceAxisFamilies, PartialsFitTheWorkspaceThatIsAskedFor) {
  std::array<char, 64> memory{};
  const std::array<void*, 2> buffers{memory.data(), memory.data()};
  int split = 0;
  for (const ReduceSpec& spec : {ReduceSpec{}, ReduceSpec{.op = ReduceOp::mean_variance, .dtype = DType::f16},
                                 ReduceSpec{.numerics = Numerics::reproducible}})
    for (const Problem& problem : shapes_of(spec))
      for (const RankedPolicy& ranked : rank_policies(h100_facts(), problem).policies)
        for (const std::int64_t max_blocks : {1, 132, 1056, 4224}) {
          if (spec.is_reproducible() && problem.family == &reduce_rows_family()) continue;  // their spans are bounded
          const Candidate candidate{ranked.policy, {max_blocks}};
          LaunchList launches;
          problem.family->encode(problem, candidate, buffers, memory.data(), launches);
          EXPECT_GE(launches.begin()->grid.x, 1u);
          EXPECT_EQ(launches.begin()->grid.x % launches.begin()->cluster_blocks, 0u);
          if (launches.end() - launches.begin() < 2) continue;
          ++split;
          const Launch& finish = *(launches.begin() + 1);
          const auto& combined = *static_cast<const PartsArguments*>(finish.arguments.value(0));
          const unsigned parts = combined.parts, outputs = combined.outputs;
          EXPECT_EQ(outputs, problem.extents[0] * problem.extents[2]);
          EXPECT_LE(kWorkspaceHeaderBytes + std::size_t{parts} * outputs * axis_state_bytes(problem),
                    problem.family->workspace_bytes(problem, candidate))
              << to_string(problem) << " " << problem.family->space().to_string(ranked.policy) << " " << max_blocks;
        }
  EXPECT_GT(split, 1000);
}

TEST(ReduceAxisFamilies, BlocksAreIndependentWhereTheyShareNoOutput) {
  for (const Problem& problem : {rows(1 << 20, 64), columns({1, 1 << 10, 1 << 16})}) {
    const KernelFamily& family = *problem.family;
    for (const Policy& policy : family.space().all()) {
      const std::string name = family.space().to_string(policy);
      const bool shares = name.find("scope=grid") != std::string::npos;
      EXPECT_EQ(family.shape(problem, policy).independent_blocks, !shares) << name;
    }
  }
}

TEST(ReduceAxisFamilies, MoveEachElementAndEachResultOnce) {
  EXPECT_EQ(reduce_rows_family().bytes_moved(rows(10, 8, 100)), 10 * 8 * 4 + 10 * 4);
  EXPECT_EQ(reduce_columns_family().bytes_moved(columns({3, 10, 8})), 3 * 10 * 8 * 4 + 3 * 8 * 4);
  const std::vector<BufferSpec> buffers = reduce_rows_family().buffers(rows(10, 8, 100));
  EXPECT_EQ(buffers[0].elements, 908);
  EXPECT_EQ(buffers[1].elements, 10);
  EXPECT_EQ(reduce_columns_family().buffers(columns({3, 10, 8, 9}))[0].elements, 269);
  EXPECT_EQ(reduce_rows_family().buffers(rows(10, 0))[0].elements, 0);
}

TEST(ReduceAxisFamilies, VerifyFewElementsButAllPartsOfTheOutput) {
  for (const Problem& problem : shapes_of({.op = ReduceOp::minmax})) {
    const std::int64_t results = problem.family->buffers(problem)[1].elements;
    std::int64_t end = 0;
    std::int64_t count = 0;
    const std::vector<ElementRange> parts = problem.family->verifier().verified_parts(problem, 1);
    if (results == 0) {
      EXPECT_TRUE(parts.empty());
      continue;
    }
    for (const ElementRange& part : parts) {
      EXPECT_GE(part.first, end) << to_string(problem);
      EXPECT_EQ(part.first % 2, 0);
      EXPECT_GT(part.count, 0);
      end = part.first + part.count;
      count += part.count / 2;
    }
    EXPECT_EQ(parts.front().first, 0);
    EXPECT_EQ(end, results) << to_string(problem);
    EXPECT_LE(count * std::min<std::int64_t>(problem.extents[1], reduce_reference::kInputPeriod), 1 << 19)
        << to_string(problem);
    EXPECT_LE(parts.size(), 8u);
  }
}

TEST(ReduceAxisFamilies, VerifiedProblemsAreNotLargerAndHaveGapsOrOtherStarts) {
  const std::vector<Problem> of_rows = reduce_rows_family().verifier().verified_problems(rows(10, 7));
  ASSERT_EQ(of_rows.size(), 4u);
  EXPECT_EQ(of_rows[1].extents, (Extents{9, 7, 1}));
  EXPECT_EQ(of_rows[2].extents, (Extents{10, 6, 1}));
  EXPECT_EQ(of_rows[2].pitches[0], 7);
  EXPECT_EQ(of_rows[3].extents, (Extents{10, 6, 1}));
  EXPECT_EQ(of_rows[3].pitches[0], 0);
  for (const Problem& problem : shapes_of({}))
    for (const Problem& smaller : problem.family->verifier().verified_problems(problem))
      EXPECT_LE(problem.family->buffers(smaller)[0].elements, problem.family->buffers(problem)[0].elements);
}

/// Sums of what each output reads, as a kernel would leave them in the verified parts.
std::vector<std::byte> sums_of(const Problem& problem, const std::vector<std::byte>& pattern, std::int64_t wrong) {
  const auto period = static_cast<std::int64_t>(pattern.size() / sizeof(float));
  const std::int64_t inner = problem.extents[2];
  const std::int64_t pitch = problem.pitches[0] != 0 ? problem.pitches[0] : inner == 1 ? problem.extents[1] : inner;
  const bool is_rows = problem.family == &reduce_rows_family();
  std::vector<float> sums;
  for (const ElementRange& part : problem.family->verifier().verified_parts(problem, 1))
    for (std::int64_t output = part.first; output < part.first + part.count; ++output) {
      double sum = output == wrong ? 1 : 0;
      for (std::int64_t i = 0; i < problem.extents[1]; ++i) {
        const std::int64_t at = is_rows ? output * pitch + i
                                        : (output / inner * problem.extents[1] + i) * pitch + output % inner;
        float value;
        std::memcpy(&value, pattern.data() + static_cast<std::size_t>(at % period) * sizeof(float), sizeof(float));
        sum += value;
      }
      sums.push_back(static_cast<float>(sum));
    }
  const auto bytes = std::as_bytes(std::span(sums));
  return {bytes.begin(), bytes.end()};
}

TEST(ReduceAxisFamilies, ColumnsOfFewRowsLeaveRegistersForManyThreads) {
  const KernelFamily& family = reduce_columns_family();
  /// The launch bounds of the policies that differ in them alone and are worth measuring.
  const auto bounds = [&](DType dtype, std::int64_t reduced, const std::string& policy,
                          ReduceOp op = ReduceOp::logsumexp) {
    const Problem problem = reduce_columns_problem({.op = op, .dtype = dtype}, {.reduced = reduced, .inner = 1 << 20});
    std::string all;  // "128, 1; 128": min_blocks=1, and none
    for (const std::string_view min_blocks : min_blocks_parameter.names) {
      const auto parsed = family.space().parse(policy + " min_blocks=" + std::string(min_blocks));
      if (!parsed || !reason_to_skip(problem, *parsed, h100_facts()).empty()) continue;
      const std::string entry = family.unit(problem, *parsed).entries.front();
      const std::size_t at = entry.find(", ") + 2;
      all += (all.empty() ? "" : "; ") + entry.substr(at, entry.find('>', at) - at);
    }
    return all;
  };
  const std::string four = "block_threads=128 threads_per_column=1 unroll=4 scope=block staging=direct";
  EXPECT_EQ(bounds(DType::f16, 4, four), "128, 8");
  EXPECT_EQ(bounds(DType::f32, 31, "block_threads=256 threads_per_column=8 unroll=4 scope=block staging=direct"),
            "256, 4");
  EXPECT_EQ(bounds(DType::f16, 4, four, ReduceOp::sum), "128") << "takes fewer registers than that would leave";
  EXPECT_EQ(bounds(DType::f16, 8192, four), "128") << "many rows: a thread has loads enough of its own";
  EXPECT_EQ(bounds(DType::f16, 8192, "block_threads=128 threads_per_column=1 unroll=4 scope=grid"), "128");
  EXPECT_EQ(bounds(DType::f16, 31, "block_threads=128 threads_per_column=4 unroll=8 scope=block staging=direct"),
            "128, 1; 128")
      << "would spill";
  EXPECT_EQ(bounds(DType::f64, 4, four), "128") << "would spill";
}

TEST(ReduceAxisFamilies, StatesOfColumnsHaveGapsBehindEvery128Bytes) {
  const auto smem = [](ReduceOp op) {
    const Problem problem = reduce_columns_problem({.op = op, .dtype = DType::f16}, {.reduced = 5000, .inner = 4096});
    const std::string policy = "block_threads=256 threads_per_column=16 unroll=4 scope=grid min_blocks=unset";
    const std::string source = problem.family->unit(problem, problem.family->space().parse(policy).value()).source;
    return std::atoi(source.c_str() + source.find("kSmemBytes == ") + 14);
  };
  EXPECT_EQ(smem(ReduceOp::sum), 16 * (128 + 3) * 4);
  EXPECT_EQ(smem(ReduceOp::logsumexp), 16 * (128 + 7) * 8);
}

TEST(ReduceAxisFamilies, NarrowTilesOfColumnsThatBeginAnywhereReadMore) {
  const auto traffic = [](std::int64_t inner, const std::string& policy) {
    const Problem problem = reduce_columns_problem({.dtype = DType::f16}, {.reduced = 12289, .inner = inner});
    const Policy parsed = problem.family->space().parse("block_threads=512 " + policy + " min_blocks=unset").value();
    return problem.family->shape(problem, parsed).traffic;
  };
  const std::string narrow = "threads_per_column=64 unroll=8 scope=block staging=direct";
  EXPECT_NEAR(traffic(4097, narrow), 1.27, 0.01);
  EXPECT_NEAR(traffic(4097, "threads_per_column=16 unroll=8 scope=grid"), 1.01, 0.01);
  EXPECT_EQ(traffic(4096, narrow), 1) << "rows are aligned";
  EXPECT_EQ(traffic(7, "threads_per_column=64 unroll=8 scope=grid"), 1) << "a tile has whole rows";
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::logsumexp}) {
    const Problem problem = reduce_columns_problem({.op = op, .dtype = DType::f16}, {.reduced = 12289, .inner = 4097});
    const auto first = rank_policies(h100_facts(), problem).policies.at(0).policy.as<ColumnsPolicy>();
    EXPECT_EQ(first.scope, Scope::grid) << "37 us where narrow tiles take 43 (H100)";
  }
}

TEST(ReduceAxisFamilies, PacksAreRealignedWhereRowsBeginAnywhereAndFewThreadsShareThem) {
  const KernelFamily& family = reduce_columns_family();
  const auto why_not = [&](DType dtype, std::int64_t rows, std::int64_t columns, const std::string& policy) {
    const Problem problem = reduce_columns_problem({.dtype = dtype}, {.reduced = rows, .inner = columns});
    return reason_to_skip(problem, family.space().parse(policy + " min_blocks=unset").value(), h100_facts()).text();
  };
  const std::string alone = "block_threads=128 threads_per_column=1 unroll=8 scope=block staging=shifted";
  EXPECT_EQ(why_not(DType::f16, 31, 100001, alone), "");
  EXPECT_EQ(why_not(DType::f64, 8, 100001, alone), "");
  EXPECT_THAT(why_not(DType::f16, 60, 100001, alone), Names("enough"));
  EXPECT_THAT(why_not(DType::f16, 31, 100000, alone), Names("begin", "pack"));
  EXPECT_THAT(
      why_not(DType::f16, 31, 100001, "block_threads=128 threads_per_column=8 unroll=8 scope=block staging=shifted"),
      Names("whole", "packs"));
  EXPECT_THAT(
      why_not(DType::f16, 31, 100001, "block_threads=128 threads_per_column=1 unroll=2 scope=block staging=shifted"),
      Names("narrow", "packs"));
  EXPECT_THAT(
      why_not(DType::f16, 31, 100001, "block_threads=128 threads_per_column=1 unroll=16 scope=block staging=shifted"),
      Names("registers"));
}

TEST(ReduceAxisFamilies, StagedTilesOfReproducibleRowsAreWholeTurnsWhereThatCostsLittle) {
  const auto slices = [](Numerics numerics, std::int64_t columns, int lanes, int packs) {
    const Problem problem = reduce_rows_problem({.numerics = numerics}, {1000, columns});
    const StagedTile tile{problem, 256, lanes, packs};
    return tile.slices(AxisLayout::of_rows(problem));
  };
  EXPECT_EQ(slices(Numerics::reproducible, 100, 16, 8), 80);  // 81 have room, for 16 groups
  EXPECT_EQ(slices(Numerics::reproducible, 100, 16, 4), 40);  // 32 would be too few
  EXPECT_EQ(slices(Numerics::reproducible, 100, 2, 8), 81);   // of 128 at once
  EXPECT_EQ(slices(Numerics::reproducible, 8192, 32, 8), 1);
  EXPECT_EQ(slices(Numerics::fast, 100, 16, 8), 81);
}

TEST(ReduceAxisFamilies, TilesOfColumnsAreAlikeAndAsManyForEachBlock) {
  const auto divided = [](std::int64_t rows, std::int64_t columns, int unroll, std::int64_t blocks) {
    const Problem problem = reduce_columns_problem({.dtype = DType::f16}, {.reduced = rows, .inner = columns});
    const auto policy = Policy::of(ColumnsPolicy{.block_threads = 256, .threads_per_column = 8, .unroll = unroll});
    ColumnsLayout layout(problem, policy);
    layout.even_out(blocks);
    EXPECT_GE(layout.tiles * layout.tile_columns, columns);
    return std::pair(layout.tiles, layout.tile_columns);
  };
  EXPECT_EQ(divided(2000, 50257, 8, 264), std::pair(262l, 192l)) << "203 of 248 columns otherwise";
  EXPECT_EQ(divided(2000, 50257, 8, 203), std::pair(203l, 248l));
  EXPECT_EQ(divided(2000, 50257, 8, 1056), std::pair(203l, 248l)) << "tiles would be too narrow";
  EXPECT_EQ(divided(2000, 50256, 8, 264), std::pair(262l, 192l)) << "whole lines";
  EXPECT_EQ(divided(60, 50257, 8, 264), std::pair(203l, 248l)) << "a thread has one tile of rows";
  EXPECT_EQ(divided(2000, 50257, 8, 107), std::pair(210l, 240l)) << "in two rounds";
}

TEST(ReduceAxisFamilies, VerifyTellsRightFromWrongAndWhere) {
  for (const Problem& problem : {rows(1000, 700), rows(5, 300000), rows(300, 7, 9), columns({1, 700, 1000}),
                                 columns({1, 300000, 3}), columns({20, 30, 5, 8})}) {
    const KernelFamily& family = *problem.family;
    const std::vector<std::vector<std::byte>> patterns{family.verifier().input_pattern(problem, 0, "small_integers")};
    const Candidate candidate{rank_policies(h100_facts(), problem).policies[0].policy, {132}};
    const std::vector<std::vector<std::byte>> right{sums_of(problem, patterns[0], -1)};
    EXPECT_EQ(family.verifier().verify(problem, candidate, patterns, right), "") << to_string(problem);
    const ElementRange last = family.verifier().verified_parts(problem, 1).back();
    const std::int64_t at = last.first + last.count - 1;
    const std::vector<std::vector<std::byte>> wrong{sums_of(problem, patterns[0], at)};
    EXPECT_THAT(family.verifier().verify(problem, candidate, patterns, wrong),
                Names("result " + std::to_string(at) + " of"));
  }
}

}  // namespace
}  // namespace hone
