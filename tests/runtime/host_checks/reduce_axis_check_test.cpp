// The templates of row and column reductions under the checks of the host device: every way in which threads share the
// work, operations and dtypes in turns; in several orders, on shapes with rows that are aligned or not, with gaps, and
// with less than one tile.
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/reduce_axis.h>

#include <array>
#include <vector>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

// Sanitizers see what is wrong in any order of threads, and are slow: one order there.
constexpr std::size_t kCheckedWorkspaceBytes = 1 << 16;
constexpr std::int64_t kBlocks = 5;

/// A policy, the shape that it is for, and what is reduced.
struct AxisCase {
  const KernelFamily& (*family)();
  Extents extents;
  std::int64_t pitch;
  ReduceSpec spec;
  const char* policy;
};

Problem problem_of(const AxisCase& one) {
  if (one.family == reduce_rows_family)
    return reduce_rows_problem(one.spec, {one.extents[0], one.extents[1], one.pitch});
  return reduce_columns_problem(one.spec, {one.extents[0], one.extents[1], one.extents[2], one.pitch});
}

/// Makes a call with its own arrays and compares its results with the reference.
void run_problem(const HostRun& run, const Candidate& candidate, const Problem& problem, std::size_t first_buffer) {
  const KernelFamily& family = *problem.family;
  const std::vector<std::vector<std::byte>> patterns{
      family.verifier().input_pattern(problem, 0, family.verifier().input_kinds(problem).front())};
  auto* const out = run.buffer<std::byte>(first_buffer + 1);
  const std::array<void*, 2> buffers{run.buffer<void>(first_buffer), out};
  LaunchList launches;
  family.encode(problem, candidate, buffers, run.buffer<void>(0), launches);
  for (const Launch& launch : launches) run.launch(launch);

  const BufferSpec results = family.buffers(problem)[1];
  std::vector<std::vector<std::byte>> outputs(1);
  for (const ElementRange& part : family.verifier().verified_parts(problem, 1)) {
    const auto bytes = static_cast<std::int64_t>(info(results.dtype).size_bytes);
    outputs[0].insert(outputs[0].end(), out + part.first * bytes, out + (part.first + part.count) * bytes);
  }
  const std::string wrong = family.verifier().verify(problem, candidate, patterns, outputs);
  if (!wrong.empty()) throw Error(ErrorCode::device_failed, to_string(problem) + ": " + wrong);
}

class ReduceAxisCheck : public testing::TestWithParam<AxisCase> {};

TEST_P(ReduceAxisCheck, IsRightInEveryOrder) {
  if (!in_share(GetParam().policy)) GTEST_SKIP() << kNotInShare;
  const Problem problem = problem_of(GetParam());
  const KernelFamily& family = *problem.family;
  const std::optional<Policy> policy = family.space().parse(GetParam().policy);
  ASSERT_TRUE(policy);
  const Candidate candidate{*policy, {kBlocks}};
  ASSERT_LE(family.workspace_bytes(problem, candidate), kCheckedWorkspaceBytes);
  std::vector<Problem> problems = family.verifier().verified_problems(problem);

  HostCheck check;
  check.unit = unit_of(problem, *policy);
  check.looks_for_lost_updates = !kSanitized;
  check.buffers.push_back({"workspace", std::vector<std::byte>(kCheckedWorkspaceBytes)});
  for (const Problem& called : problems) {
    const std::vector<BufferSpec> specs = family.buffers(called);
    // Exactly as long as the call may read and write.
    const std::vector<std::byte> period =
        family.verifier().input_pattern(called, 0, family.verifier().input_kinds(called).front());
    std::vector<std::byte> in(specs[0].size_bytes());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = period[i % period.size()];
    check.buffers.push_back({"in", std::move(in)});
    check.buffers.push_back({"out", std::vector<std::byte>(specs[1].size_bytes())});
  }
  check.orders = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 1}};
  if (kSanitized) check.orders.resize(1);
  check.run = [=](const HostRun& run) {
    for (std::size_t i = 0; i < problems.size(); ++i) run_problem(run, candidate, problems[i], 1 + 2 * i);
  };
  const HostCheckReport report = check_on_host(check);
  EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
}

constexpr ReduceSpec of(ReduceOp op, DType dtype) { return {.op = op, .dtype = dtype}; }
constexpr ReduceSpec reproducible(ReduceOp op, DType dtype) {
  return {.op = op, .dtype = dtype, .numerics = Numerics::reproducible};
}

const AxisCase kCases[] = {
    {reduce_rows_family, {300, 8, 1}, 0, of(ReduceOp::sum, DType::f32),
     "block_threads=128 scope=warp threads_per_row=2 staging=direct unroll=1 rows_per_thread=4 min_blocks=1"},
    {reduce_rows_family, {40, 333, 1}, 0, of(ReduceOp::argmax, DType::i16),
     "block_threads=128 scope=warp threads_per_row=32 staging=direct unroll=2 rows_per_thread=1 min_blocks=1"},
    {reduce_rows_family, {50, 100, 1}, 103, of(ReduceOp::logsumexp, DType::f16),
     "block_threads=128 scope=warp threads_per_row=8 staging=direct unroll=2 rows_per_thread=2 min_blocks=1"},
    {reduce_rows_family, {7, 3001, 1}, 0, of(ReduceOp::mean_variance, DType::f32),
     "block_threads=128 scope=block unroll=2 tail=warp min_blocks=1"},
    {reduce_rows_family, {3, 20011, 1}, 0, of(ReduceOp::minmax, DType::u8),
     "block_threads=128 scope=grid unroll=1 tail=shared min_blocks=1"},
    {reduce_rows_family, {2000, 7, 1}, 0, of(ReduceOp::sum, DType::i32),
     "block_threads=128 scope=warp threads_per_row=1 staging=shared unroll=4 min_blocks=1"},
    {reduce_rows_family, {200, 77, 1}, 0, of(ReduceOp::all, DType::boolean),
     "block_threads=128 scope=warp threads_per_row=16 staging=shared unroll=4 min_blocks=1"},
    {reduce_columns_family, {1, 500, 100}, 0, of(ReduceOp::sum, DType::f16),
     "block_threads=128 threads_per_column=8 unroll=4 scope=block staging=direct min_blocks=1"},
    {reduce_columns_family, {1, 3000, 7}, 0, of(ReduceOp::argmin, DType::f32),
     "block_threads=128 threads_per_column=4 unroll=4 scope=grid min_blocks=1"},
    {reduce_columns_family, {2, 900, 8}, 0, of(ReduceOp::mean, DType::f64),
     "block_threads=128 threads_per_column=2 unroll=8 scope=grid min_blocks=1"},
    {reduce_columns_family, {3, 31, 129}, 131, of(ReduceOp::max, DType::bf16),
     "block_threads=256 threads_per_column=8 unroll=2 scope=block staging=direct min_blocks=1"},
    {reduce_columns_family, {900, 6, 3}, 0, of(ReduceOp::count_nonzero, DType::f32),
     "block_threads=128 threads_per_column=1 unroll=4 scope=block staging=shared min_blocks=1"},
    {reduce_columns_family, {1, 31, 1025}, 0, of(ReduceOp::logsumexp, DType::f16),
     "block_threads=128 threads_per_column=1 unroll=2 scope=block staging=shifted min_blocks=1"},
    {reduce_columns_family, {3, 31, 129}, 131, of(ReduceOp::argmax, DType::i8),
     "block_threads=128 threads_per_column=4 unroll=2 scope=block staging=shifted min_blocks=1"},
    {reduce_columns_family, {1, 61, 777}, 0, of(ReduceOp::sum, DType::f32),
     "block_threads=256 threads_per_column=2 unroll=4 scope=block staging=shifted min_blocks=1"},
    // The last row begins with a pack, and ends seven elements behind a tile.
    {reduce_columns_family, {1, 9, 1031}, 0, of(ReduceOp::max, DType::bf16),
     "block_threads=128 threads_per_column=2 unroll=2 scope=block staging=shifted min_blocks=1"},
    {reduce_columns_family, {2, 40, 333}, 0, of(ReduceOp::product, DType::f64),
     "block_threads=128 threads_per_column=1 unroll=4 scope=block staging=shifted min_blocks=1"},
    // Two tiles whose results leave in packs that neighbouring lanes exchange, and of a third a warp, some packs and
    // three columns.
    {reduce_columns_family, {1, 4, 2331}, 2336, of(ReduceOp::logsumexp, DType::f16),
     "block_threads=128 threads_per_column=1 unroll=2 scope=block staging=direct min_blocks=1"},
    {reduce_columns_family, {2, 5, 2064}, 0, of(ReduceOp::sum, DType::i8),
     "block_threads=128 threads_per_column=1 unroll=4 scope=block staging=direct min_blocks=1"},
    // Sharers that are combined in two steps, without and with rows that are folded.
    {reduce_columns_family, {1, 3000, 16}, 0, of(ReduceOp::logsumexp, DType::f32),
     "block_threads=256 threads_per_column=64 unroll=2 scope=grid min_blocks=1"},
    {reduce_columns_family, {1, 9000, 3}, 0, of(ReduceOp::argmax, DType::f16),
     "block_threads=256 threads_per_column=32 unroll=2 scope=grid min_blocks=1"},
    // 82 folded rows, in two steps, too.
    {reduce_columns_family, {1, 9000, 3}, 0, of(ReduceOp::sum, DType::f16),
     "block_threads=256 threads_per_column=8 unroll=2 scope=grid min_blocks=1"},
    // Chunks that a block makes one after the other, of folded rows, and of which blocks make some each.
    {reduce_columns_family, {1, 1300, 40}, 44, reproducible(ReduceOp::sum, DType::f32),
     "block_threads=128 threads_per_column=16 unroll=2 scope=block staging=direct min_blocks=unset"},
    {reduce_columns_family, {2, 600, 7}, 0, reproducible(ReduceOp::mean_variance, DType::f64),
     "block_threads=128 threads_per_column=4 unroll=2 scope=block staging=direct min_blocks=unset"},
    {reduce_columns_family, {1, 2600, 33}, 0, reproducible(ReduceOp::logsumexp, DType::f32),
     "block_threads=128 threads_per_column=8 unroll=4 scope=grid min_blocks=unset"},
};

INSTANTIATE_TEST_SUITE_P(Ways, ReduceAxisCheck, testing::ValuesIn(kCases), [](const auto& instance) {
  std::string name(instance.param.policy);
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

}  // namespace
}  // namespace hone::test
