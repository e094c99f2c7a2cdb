// Every way in which threads can share the work of rows and of columns, launched directly, against the families'
// reference.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hone/canonical_reduce.h>
#include <hone/reduce_axis.h>

#include "runtime/choose/compiled.h"
#include "runtime/choose/result_checks.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce_axis/axis_family.h"
#include "runtime/families/reduce_axis/canonical_columns.h"
#include "runtime/measure/workload.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/runtime/support/verify_in_grids.h"

namespace hone {
namespace {

/// Policies, launched directly.
class ReduceAxisPolicies : public DeviceTest {
 protected:
  /// The policies that a device with many multiprocessors would try, with few threads: on the host, each is a fiber.
  std::vector<Policy> policies_of(const Problem& problem) const {
    DeviceFacts facts = device_->facts();
    facts.sm_count = 132;
    std::vector<Policy> some;
    for (const Policy& policy : problem.family->space().all())
      if (reason_to_skip(problem, policy, facts).empty() && (is_cuda() || policy.as<RowsPolicy>().block_threads <= 256))
        some.push_back(policy);
    return some;
  }

  /// In grids of a few blocks, some of which may be clusters, and of `most_blocks`.
  void verify(const Problem& problem, const Policy& policy, std::int64_t most_blocks = 40) {
    const KernelFamily& family = *problem.family;
    const Unit unit = unit_of(problem, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const CompiledCode code = load_policy(*device_, problem, policy, unit, binary);
    Workload workload(device_, problem, nullptr);
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    const int cluster = family.shape(problem, policy).cluster_blocks;
    ASSERT_EQ(verify_in_grids(*device_, workload, policy, code.module, checked_problems(problem, policy, unit),
                              {cluster * 3, most_blocks}, workspace.data()),
              "");
  }

  /// Launches one kernel, that of `of_class`, on each of the problems.
  void verify_one_kernel(const Problem& of_class, const Policy& policy, const std::vector<Problem>& problems) {
    ASSERT_EQ(of_class.family->is_valid(of_class, policy, device_->facts()).text(), "");
    const Unit unit = unit_of(of_class, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const CompiledCode code = load_policy(*device_, of_class, policy, unit, binary);
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    for (const Problem& problem : problems) {
      EXPECT_EQ(unit_of(problem, policy).source, unit.source) << "of another kernel";
      Workload workload(device_, problem, nullptr);
      EXPECT_EQ(verify_in_grids(*device_, workload, policy, code.module, {problem}, {1, 40}, workspace.data()), "");
    }
  }
};

/// A shape for each way that a parameter names, and a way for each shape that is awkward for it.
std::vector<Problem> problems_of(const ReduceSpec& spec) {
  const auto rows = [&](RowsShape shape, std::uint32_t alignment = kMaxAlignment) {
    return reduce_rows_problem(spec, shape, alignment);
  };
  const auto columns = [&](ColumnsShape shape, std::uint32_t alignment = kMaxAlignment) {
    return reduce_columns_problem(spec, shape, alignment);
  };
  return {rows({1000, 8}),          rows({129, 64}),
          rows({300, 7}, 1),        rows({33, 333}, 1),
          rows({31, 1025}),         rows({3, 20001}),
          rows({50, 13, 16}),       columns({1, 5000, 7}),
          columns({1, 700, 64}),    columns({1, 129, 1000}),
          columns({1, 31, 1025}),   columns({200, 8, 3}),
          columns({5, 60, 3, 4}),   columns({1, 60, 100, 104}),
          columns({3, 40, 129}, 1), columns({1, 4, 4097})};
}

/// Who shares the work: what a policy says besides its sizes.
std::string way_of(const Problem& problem, const Policy& policy) {
  if (problem.family == &reduce_rows_family()) {
    const auto rows = policy.as<RowsPolicy>();
    return fmt::format("{} {} {} {}", static_cast<int>(rows.scope), rows.threads_per_row,
                       static_cast<int>(rows.staging), rows.cluster_blocks);
  }
  const auto columns = policy.as<ColumnsPolicy>();
  return fmt::format("{} {}", static_cast<int>(columns.scope), static_cast<int>(columns.staging));
}

TEST_F(ReduceAxisPolicies, EveryWaySumsF32) {
  std::vector<Problem> problems = problems_of({});
  for (const Problem& each : problems_of({.numerics = Numerics::reproducible}))
    if (refusal_of(each).empty()) problems.push_back(each);
  std::size_t turn = 0;
  for (const Problem& problem : problems) {
    // One policy of each way to share the work; on the host, which compiles them one by one, every third of these.
    std::vector<std::string> seen;
    for (const Policy& policy : policies_of(problem)) {
      const std::string way = way_of(problem, policy);
      if (std::find(seen.begin(), seen.end(), way) != seen.end()) continue;
      seen.push_back(way);
      if ((seen.size() % 3 == 1 || is_cuda()) && test::in_share(turn++)) verify(problem, policy);
    }
    EXPECT_FALSE(seen.empty()) << to_string(problem);
  }
}

/// Columns of one chunk and of several, whose last is short, and of folded rows; shared by blocks and not.
TEST_F(ReduceAxisPolicies, ReproducibleColumnsHaveTheBitsOfTheDefinition) {
  const auto shapes = std::to_array<std::pair<ColumnsShape, std::uint32_t>>({{{1, 5000, 7}, kMaxAlignment},
                                                                             {{1, 3001, 64}, kMaxAlignment},
                                                                             {{1, 2100, 133}, 1},
                                                                             {{3, 700, 40, 48}, kMaxAlignment},
                                                                             {{2, 1500, 3}, 1},
                                                                             {{1, 31, 1025}, 1},
                                                                             {{1, 9000, 16}, kMaxAlignment}});
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes)
      for (const NanPolicy nan : {NanPolicy::propagate, NanPolicy::ignore}) {
        const ReduceSpec spec{.op = op.op, .dtype = dtype.dtype, .nan = nan, .numerics = Numerics::reproducible};
        if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype) || !spec.is_reproducible()) continue;
        if (nan == NanPolicy::ignore && !dtype.is_floating()) continue;
        if (!is_due(++turn, test::kSanitized ? 29 : 7)) continue;
        const auto& [shape, alignment] = shapes[turn / 7 % shapes.size()];
        const Problem problem = reduce_columns_problem(spec, shape, alignment);
        ASSERT_EQ(refusal_of(problem), "");
        const std::vector<Policy> policies = policies_of(problem);
        ASSERT_FALSE(policies.empty()) << to_string(problem);
        verify(problem, policies[turn * 131 % policies.size()]);
      }
}

/// Chunks that the threads of a block hold while they fold them: several to a block, whose last is short, of one tile
/// and of several, by blocks that share columns and that do not, of rows that are folded and that begin anywhere.
TEST_F(ReduceAxisPolicies, BlocksMayHoldChunksOfColumns) {
  std::size_t turn = 0;
  for (const ReduceOp op : {ReduceOp::mean_variance, ReduceOp::logsumexp})
    for (const DType dtype : {DType::f16, DType::f32, DType::f64})
      for (const NanPolicy nan : {NanPolicy::propagate, NanPolicy::ignore}) {
        const ReduceSpec spec{.op = op, .dtype = dtype, .nan = nan, .numerics = Numerics::reproducible};
        const auto size = static_cast<std::uint32_t>(info(dtype).size_bytes);
        const auto chunk = static_cast<std::int32_t>(2048 / size);
        const auto shapes =
            std::to_array<std::pair<ColumnsShape, std::uint32_t>>({{{1, 4 * chunk + 5, 96}, kMaxAlignment},
                                                                   {{1, 5 * chunk, 131}, 1},
                                                                   {{3, 2 * chunk + 77, 70, 81}, 1},
                                                                   {{2, 9 * chunk - 1, 3}, kMaxAlignment}});
        for (const auto& [shape, alignment] : shapes) {
          const ColumnsPolicy policy{.block_threads = turn % 2 == 0 ? 256 : 128,
                                     .threads_per_column = chunk / (size == 8 ? 16 : 32),
                                     .unroll = size == 8 ? 16 : 32,
                                     .scope = turn % 3 == 0 ? Scope::grid : Scope::block};
          if (!test::in_share(turn++)) continue;
          const Problem problem = reduce_columns_problem(spec, shape, std::max(alignment, size));
          ASSERT_EQ(refusal_of(problem), "");
          ASSERT_TRUE(CanonicalColumns(problem, Policy::of(policy)).holds_chunks()) << to_string(problem);
          verify(problem, Policy::of(policy));
        }
      }
}

/// Few chunks, of which blocks take every second row, every fourth, …: whole ones, short ones, and of a single row, so
/// that some blocks have none.
TEST_F(ReduceAxisPolicies, BlocksMayShareChunksOfColumns) {
  constexpr std::int64_t kMostBlocks = 500;
  std::size_t turn = 0;
  const Policy policy = Policy::of(
      ColumnsPolicy{.block_threads = 128, .threads_per_column = 16, .unroll = 2, .scope = Scope::grid});
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::f8e4m3})
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::l2_norm}) {
      const ReduceSpec spec{.op = op, .dtype = dtype, .numerics = Numerics::reproducible};
      if (!spec.is_reproducible() || !test::in_share(turn++)) continue;
      const auto size = static_cast<std::uint32_t>(info(dtype).size_bytes);
      const std::int64_t chunk = 2048 / size, least_tile = 7 * 16 / size;
      const auto shapes = std::to_array<std::pair<ColumnsShape, std::uint32_t>>({{{1, 2 * chunk, 128}, kMaxAlignment},
                                                                                 {{1, chunk - 3, 300}, 1},
                                                                                 {{1, 3 * chunk + 1, 133}, 1},
                                                                                 {{2, chunk + 70, 96, 104}, 8},
                                                                                 {{3, chunk / 2 + 5, 150, 171}, 1}});
      for (const auto& [shape, alignment] : shapes) {
        const Problem problem = reduce_columns_problem(spec, shape, std::max(alignment, size));
        LaunchList launches;
        const std::array<void*, 2> buffers{};
        problem.family->encode(problem, {policy, {kMostBlocks}}, buffers, nullptr, launches);
        const std::int64_t tiles = shape.outer * divide_up(shape.inner, least_tile);
        EXPECT_GT(launches.begin()->grid.x, tiles * divide_up(shape.reduced, chunk)) << to_string(problem);
        verify(problem, policy, kMostBlocks);
      }
    }
}

/// Policies with nearly all static shared memory that there is, of which the host device counts that of both kernels.
TEST_F(ReduceAxisPolicies, ColumnsThatBlocksShareHaveSharedMemoryForBothKernels) {
  const ReduceSpec spec{.op = ReduceOp::mean_variance,
                        .dtype = DType::bf16,
                        .nan = NanPolicy::ignore,
                        .numerics = Numerics::reproducible};
  const Problem problem = reduce_columns_problem(spec, {.reduced = 9000, .inner = 16});
  int verified = 0;
  for (const Policy& policy : problem.family->space().all()) {
    const auto columns = policy.as<ColumnsPolicy>();
    if (columns.scope != Scope::grid || columns.block_threads > 128 || columns.threads_per_column > 2) continue;
    if (columns.unroll != 2 || columns.min_blocks != MinBlocks::unset) continue;
    if (!problem.family->is_valid(problem, policy, device_->facts()).empty()) continue;
    verify(problem, policy);
    ++verified;
  }
  EXPECT_GT(verified, 0);
}

/// Chunks beside each other whose exponentials are relative to 1, or to elements above or below, or are all 0, or have
/// no sum.
TEST_F(ReduceAxisPolicies, ReproducibleLogsumexpOfColumnsMayBeFarFromZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::int64_t kColumns = 70;
  enum Kind { near, above, below, lowest, lowest_but_one, with_infinity, with_nan };
  const auto verify_columns = [&]<class T>(T, std::int64_t chunk, std::initializer_list<Kind> kinds) {
    const ReduceSpec spec{.op = ReduceOp::logsumexp, .dtype = kDTypeOf<T>, .numerics = Numerics::reproducible};
    const std::int64_t rows = 3 * chunk + 100;
    const Problem problem = reduce_columns_problem(spec, {.reduced = rows, .inner = kColumns});
    std::vector<float> values = random_values<float>(rows * kColumns);
    for (std::int64_t i = 0; i < rows * kColumns; ++i) {
      const std::int64_t row = i / kColumns, column = i % kColumns;
      const bool is_first = row % chunk == 0, is_mixed = column % 2 == 0;
      switch (kinds.begin()[static_cast<std::size_t>(column / 2 + is_mixed * row / chunk) % kinds.size()]) {
        case near: break;
        case above: values[i] += 100; break;
        case below: values[i] -= 100; break;
        case lowest: values[i] = -kInfinity; break;
        case lowest_but_one: values[i] = is_first ? values[i] : -kInfinity; break;
        case with_infinity: values[i] = is_first && column < 20 ? kInfinity : values[i]; break;
        case with_nan: values[i] = is_first && column > 50 ? kNan : values[i]; break;
      }
    }
    const std::vector<T> elements(values.begin(), values.end());
    const auto in = upload(elements);
    const DeviceBuffer out(device_, kColumns * sizeof(float));
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    const std::vector<Policy> policies = policies_of(problem);
    for (std::size_t i = 0; i < policies.size(); i += policies.size() / 4 + 1) {
      const Unit unit = unit_of(problem, policies[i]);
      const auto binary = std::make_shared<const Binary>(device_->compile(unit));
      const LoadedCandidate loaded{{policies[i], {3}},
                                   load_policy(*device_, problem, policies[i], unit, binary).module};
      loaded.enqueue(*device_, problem, std::array<void*, 2>{in.data, out.data()}, workspace.data(), nullptr);
      for (std::int64_t column = 0; column < kColumns; ++column) {
        float expected = 0;
        canonical_reduce(spec, {elements.data() + column, kColumns}, {}, rows, &expected);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(fetch(out.as<float>() + column)), std::bit_cast<std::uint32_t>(expected))
            << "column " << column << " by " << problem.family->space().to_string(policies[i]);
      }
    }
  };
  verify_columns(float{}, 512, {near, above, below, lowest, lowest_but_one, with_infinity, with_nan});
  verify_columns(float{}, 512, {near, above});
  verify_columns(half{}, 1024, {near, lowest, lowest_but_one, with_infinity, with_nan});
  verify_columns(half{}, 1024, {near, below});
}

/// Rows of more spans than a block has rounds, whose warps take longer runs; they begin anywhere.
TEST_F(ReduceAxisPolicies, ReproducibleRowsOfManyRoundsHaveTheBitsOfTheDefinition) {
  const ReduceSpec spec{.dtype = DType::f64, .numerics = Numerics::reproducible};
  constexpr std::int64_t kRows = 3, kTile = 128 * 64 / sizeof(double), kRounds = 32;
  const auto row_of = [](std::int64_t columns) { return RowsShape{kRows, columns, columns + columns % 2 + 1}; };
  const std::vector<double> values = random_values<double>(kRows * (2 * kRounds * kTile + 20));
  const auto in = upload(values, 1);
  const DeviceBuffer out(device_, kRows * sizeof(double));
  const DeviceBuffer workspace = make_workspaces(device_, 1);
  for (const Scope scope : {Scope::block, Scope::grid}) {
    const Policy policy = Policy::of(RowsPolicy{.block_threads = 128, .scope = scope});
    const Problem longest = reduce_rows_problem(spec, row_of(2 * kRounds * kTile), sizeof(double));
    const Unit unit = unit_of(longest, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const LoadedCandidate loaded{{policy, {2}}, load_policy(*device_, longest, policy, unit, binary).module};
    for (const std::int64_t tiles : {kRounds, 2 * kRounds})
      for (const std::int64_t columns : {tiles * kTile - 1, tiles * kTile, tiles * kTile + 13}) {
        const RowsShape shape = row_of(columns);
        const Problem problem = reduce_rows_problem(spec, shape, sizeof(double));
        const std::array<void*, 2> buffers{in.data, out.data()};
        loaded.enqueue(*device_, problem, buffers, workspace.data(), nullptr);
        for (std::int64_t row = 0; row < kRows; ++row) {
          double expected = 0;
          canonical_reduce(spec, {values.data() + row * shape.pitch}, {}, columns, &expected);
          EXPECT_EQ(fetch(out.as<double>() + row), expected) << "row " << row << " of " << to_string(problem);
        }
      }
  }
}

/// The partials of a row begin at any multiple of the size of a State, which is 8, 12 or 28 bytes here.
TEST_F(ReduceAxisPolicies, ReproducibleRowsOfAnyNumberOfPartialsHaveTheBitsOfTheDefinition) {
  constexpr std::int64_t kRows = 3, kTile = 128 * 64 / sizeof(double), kMostTiles = 9;
  const std::vector<double> values = random_values<double>(kRows * kMostTiles * kTile);
  const auto in = upload(values, 0);
  const DeviceBuffer out(device_, kRows * 2 * sizeof(double));
  const DeviceBuffer workspace = make_workspaces(device_, 1);
  const Policy policy = Policy::of(RowsPolicy{.block_threads = 128, .scope = Scope::grid});
  for (const auto& [op, nan] : {std::pair(ReduceOp::sum, NanPolicy::propagate), {ReduceOp::mean, NanPolicy::ignore},
                                {ReduceOp::mean_variance, NanPolicy::propagate}}) {
    const ReduceSpec spec{.op = op, .dtype = DType::f64, .nan = nan, .numerics = Numerics::reproducible};
    const Problem longest = reduce_rows_problem(spec, {kRows, kMostTiles * kTile}, sizeof(double));
    const Unit unit = unit_of(longest, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const LoadedCandidate loaded{{policy, {2}}, load_policy(*device_, longest, policy, unit, binary).module};
    for (std::int64_t tiles = 4; tiles <= kMostTiles; ++tiles) {
      const std::int64_t columns = tiles * kTile - 1;
      const Problem problem = reduce_rows_problem(spec, {kRows, columns}, sizeof(double));
      loaded.enqueue(*device_, problem, std::array<void*, 2>{in.data, out.data()}, workspace.data(), nullptr);
      const int outputs = info(op).outputs;
      for (std::int64_t row = 0; row < kRows; ++row) {
        std::array<double, 2> expected{};
        canonical_reduce(spec, {values.data() + row * columns}, {}, columns, expected.data());
        for (int i = 0; i < outputs; ++i)
          EXPECT_EQ(fetch(out.as<double>() + row * outputs + i), expected[static_cast<std::size_t>(i)])
              << "row " << row << " of " << to_string(problem);
      }
    }
  }
}

/// Rows that lanes have in flight and that begin anywhere: of all lengths near those of one pack, of half of what the
/// lanes load, and of all of it.
TEST_F(ReduceAxisPolicies, ReproducibleRowsOfLanesMayBeginAnywhere) {
  struct Lanes {
    DType dtype;
    int threads_per_row, unroll, rows_per_thread;
  };
  const DeviceBuffer workspace = make_workspaces(device_, 1);
  for (const Lanes& lanes : {Lanes{DType::f16, 4, 4, 2}, {DType::f32, 8, 2, 1}, {DType::f32, 1, 1, 1},
                             {DType::f64, 2, 8, 1}, {DType::bf16, 32, 1, 1}, {DType::f8e4m3, 1, 2, 2}})
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::l2_norm, ReduceOp::mean_variance}) {
      const ReduceSpec spec{.op = op, .dtype = lanes.dtype, .numerics = Numerics::reproducible};
      if (!reduce_supports(op, lanes.dtype) || !spec.is_reproducible()) continue;
      const std::int64_t size = info(lanes.dtype).size_bytes, pack = op == ReduceOp::mean_variance ? 1 : 16 / size;
      const std::int64_t most = lanes.threads_per_row * lanes.unroll * pack;
      const Policy policy = Policy::of(RowsPolicy{.block_threads = 64,
                                                  .scope = Scope::warp,
                                                  .threads_per_row = lanes.threads_per_row,
                                                  .unroll = lanes.unroll,
                                                  .rows_per_thread = lanes.rows_per_thread});
      const auto problem_of = [&](std::int64_t columns, std::int64_t pitch) {
        return reduce_rows_problem(spec, {37, columns, pitch}, static_cast<std::uint32_t>(size));
      };
      const Problem longest = problem_of(most, most + 1);
      const Unit unit = unit_of(longest, policy);
      const auto binary = std::make_shared<const Binary>(device_->compile(unit));
      const CompiledCode code = load_policy(*device_, longest, policy, unit, binary);
      for (const std::int64_t around : {std::int64_t{1}, pack, most / 2, most})
        for (std::int64_t columns = around - 2; columns <= around + 2; ++columns) {
          if (columns < 1 || columns > most) continue;
          const Problem problem = problem_of(columns, columns | 1);  // an odd pitch has rows of all alignments
          Workload workload(device_, problem, nullptr);
          EXPECT_EQ(verify_in_grids(*device_, workload, policy, code.module, {problem}, {1, 40}, workspace.data()), "");
        }
    }
}

/// Rows in tiles that begin anywhere, of each length of a class: side by side, and with gaps.
TEST_F(ReduceAxisPolicies, ReproducibleStagedRowsMayBeginAnywhere) {
  struct Class {
    DType dtype;
    int lanes, shortest, longest;
    ReduceOp op;
  };
  for (const auto& [dtype, lanes, shortest, longest, op] :
       {Class{DType::f16, 1, 6, 11, ReduceOp::sum}, {DType::bf16, 4, 46, 90, ReduceOp::mean},
        {DType::f16, 16, 182, 362, ReduceOp::l2_norm}, {DType::f32, 1, 1, 1, ReduceOp::sum},
        {DType::f32, 4, 46, 90, ReduceOp::l1_norm}, {DType::f64, 4, 23, 45, ReduceOp::product},
        {DType::f16, 4, 46, 90, ReduceOp::mean_variance}, {DType::bf16, 1, 6, 11, ReduceOp::logsumexp},
        {DType::f32, 16, 91, 181, ReduceOp::logsumexp}}) {
    const ReduceSpec spec{.op = op, .dtype = dtype, .numerics = Numerics::reproducible};
    const auto size = static_cast<std::uint32_t>(info(dtype).size_bytes);
    const Policy policy = Policy::of(RowsPolicy{.block_threads = 64,
                                                .scope = Scope::warp,
                                                .threads_per_row = lanes,
                                                .staging = Staging::shared,
                                                .unroll = 4});
    std::vector<Problem> of_class;
    for (std::int64_t columns = shortest; columns <= longest; columns += longest > 200 ? 7 : 1)
      for (const std::int64_t pitch : {columns, columns + 3})
        of_class.push_back(reduce_rows_problem(spec, {37, columns, pitch}, size));
    verify_one_kernel(reduce_rows_problem(spec, {37, longest, longest + 1}, size), policy, of_class);
  }
}

/// Rows for which there is code for each number of elements, and one element more, in elements of each size.
TEST_F(ReduceAxisPolicies, StagedRowsOfAFewElementsMayBeginAnywhere) {
  const auto specs = std::to_array<ReduceSpec>({{.op = ReduceOp::sum, .dtype = DType::f16},
                                                {.op = ReduceOp::logsumexp, .dtype = DType::bf16},
                                                {.op = ReduceOp::argmax, .dtype = DType::i8},
                                                {.op = ReduceOp::sum, .dtype = DType::u8},
                                                {.op = ReduceOp::mean_variance, .dtype = DType::f32},
                                                {.op = ReduceOp::minmax, .dtype = DType::f64}});
  const Policy policy = Policy::of(RowsPolicy{
      .block_threads = 64, .scope = Scope::warp, .threads_per_row = 1, .staging = Staging::shared, .unroll = 2});
  for (const ReduceSpec& spec : specs) {
    const auto size = static_cast<std::uint32_t>(info(spec.dtype).size_bytes);
    std::vector<Problem> all;
    for (std::int64_t columns = 1; columns <= 13; ++columns) {
      const Problem problem = reduce_rows_problem(spec, {2001, columns}, size);
      const std::vector<Problem> verified = problem.family->verifier().verified_problems(problem);
      all.insert(all.end(), verified.begin(), verified.end());
    }
    verify_one_kernel(reduce_rows_problem(spec, {2001, 7}, size), policy, all);
  }
}

/// Shifted loads of rows that have each number of alignments, in elements of each size: fewer rows than a thread loads
/// at once and many more, in several slices, with results that depend on the order of rows and that do not.
TEST_F(ReduceAxisPolicies, ColumnsWithShiftedLoadsMayHaveAnyPitch) {
  struct Case {
    ReduceSpec spec;
    std::int64_t rows;
    int threads_per_column, unroll;
  };
  for (const auto& [spec, rows, threads_per_column, unroll] :
       {Case{{.op = ReduceOp::sum, .dtype = DType::f16}, 31, 1, 8},
        {{.op = ReduceOp::argmin, .dtype = DType::f16}, 70, 2, 8},
        {{.op = ReduceOp::logsumexp, .dtype = DType::bf16}, 45, 4, 8},
        {{.op = ReduceOp::sum, .dtype = DType::i8}, 67, 1, 8},
        {{.op = ReduceOp::argmax, .dtype = DType::f32}, 21, 1, 4},
        {{.op = ReduceOp::mean_variance, .dtype = DType::f32}, 3, 2, 8},
        {{.op = ReduceOp::minmax, .dtype = DType::f64}, 33, 1, 4}}) {
    const auto size = static_cast<std::uint32_t>(info(spec.dtype).size_bytes);
    const Policy policy = Policy::of(ColumnsPolicy{.block_threads = 64,
                                                   .threads_per_column = threads_per_column,
                                                   .unroll = unroll,
                                                   .scope = Scope::block,
                                                   .staging = Staging::shifted});
    std::vector<Problem> of_pitches;
    for (const std::int64_t pitch : {1001, 1002, 1003, 1004, 1008})
      of_pitches.push_back(reduce_columns_problem(spec, {2, rows, 1001, pitch}, size));
    verify_one_kernel(of_pitches.front(), policy, of_pitches);
  }
}

TEST_F(ReduceAxisPolicies, EveryOperationAndDTypeInSomeWay) {
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype)) continue;
      if (!is_due(++turn, 11)) continue;
      const std::vector<Problem> problems = problems_of({.op = op.op, .dtype = dtype.dtype});
      const Problem& problem = problems[turn * 7 % problems.size()];
      const std::vector<Policy> policies = policies_of(problem);
      ASSERT_FALSE(policies.empty()) << to_string(problem);
      verify(problem, policies[turn * 13 % policies.size()]);
    }
}

}  // namespace
}  // namespace hone
