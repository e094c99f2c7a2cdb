// Compiles units of the softmax families with NVRTC: nothing may spill.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/softmax.h>

#include "runtime/choose/compiled.h"
#include "runtime/jit/cubin_resources.h"
#include "runtime/jit/nvrtc_compiler.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/share.h"

namespace hone {
namespace {

/// Divisions and exponentials of f64 use the stack to call their slow paths: these are no spilled registers.
constexpr int kMostCallFrameBytes = 64;

/// A few of the policies that remain, from `first` on.
void add_units(std::vector<Unit>& units, const Problem& problem, std::size_t first, std::size_t most) {
  const std::vector<Policy> left = allowed_policies(problem, h100_facts());
  ASSERT_FALSE(left.empty()) << to_string(problem);
  const std::size_t step = left.size() / most + 1;
  for (std::size_t i = first % step; i < left.size(); i += step) units.push_back(unit_of(problem, left[i]));
}

TEST(SoftmaxCompiles, InEveryKindOfPolicyWithoutSpills) {
  const NvrtcCompiler compiler(NvrtcSearch::from_environment());
  if (compiler.identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
  const std::array shapes{
      SoftmaxShape::rows(1 << 20, 8), SoftmaxShape::rows(1 << 16, 1 << 10), SoftmaxShape::rows(1 << 12, 1 << 15),
      SoftmaxShape::rows(4, 1 << 24), SoftmaxShape::rows(1000003, 7), SoftmaxShape::rows(12289, 4097),
      SoftmaxShape::columns(1 << 13, 1 << 13), SoftmaxShape::columns(1 << 20, 64), SoftmaxShape::columns(300, 7),
      SoftmaxShape::columns(1 << 13, 5001)};
  const std::array dtypes{DType::f16, DType::bf16, DType::f32, DType::f64};
  std::vector<Unit> units;
  std::size_t turn = 0;
  for (std::size_t d = 0; d < dtypes.size(); ++d) {
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      // Each shape has one of the dtypes of 16 bits and one of the wider ones.
      if ((d + s) % 2 != d / 2) continue;
      const DType dtype = dtypes[d];
      const SoftmaxShape& shape = shapes[s];
      ++turn;
      const SoftmaxSpec spec{.dtype = dtype, .result = turn % 4 == 0 ? DType::f32 : dtype};
      const auto problem_of = [&](const SoftmaxSpec& one) {
        return turn % 2 == 0 ? softmax_problem(one, shape) : log_softmax_problem(one, shape);
      };
      add_units(units, problem_of(spec), turn, 1);
      SoftmaxSpec exact = spec;
      exact.numerics = Numerics::reproducible;
      if (turn % 3 == 0) add_units(units, problem_of(exact), turn, 1);
    }
  }
  add_units(units, softmax_problem({}, SoftmaxShape::array(std::int64_t{1} << 32)), 0, 1);
  // One of very many policies, with code of its own; in the fast mode calls of f64 have a larger frame.
  const auto add_held = [&](DType dtype, Numerics numerics, std::int64_t columns = 1 << 24) {
    const Problem problem = softmax_problem({.dtype = dtype, .numerics = numerics}, SoftmaxShape::rows(4, columns));
    const auto held = problem.family->space().parse(
        "scope=grid combine=held ring_kib=216 row_groups=1 block_threads=1024 packs_per_thread=4 min_blocks=1");
    ASSERT_TRUE(held);
    units.push_back(unit_of(problem, *held));
  };
  for (const DType dtype : {DType::f16, DType::f32}) add_held(dtype, Numerics::fast);
  for (const DType dtype : {DType::f16, DType::f32, DType::f64}) add_held(dtype, Numerics::reproducible);
  for (const DType dtype : {DType::f16, DType::f32}) add_held(dtype, Numerics::reproducible, (1 << 24) + 1);
  const auto add_cluster = [&](DType dtype, bool is_log, std::int64_t columns, const std::string& policy_text) {
    const SoftmaxSpec spec{.dtype = dtype, .numerics = Numerics::reproducible};
    const SoftmaxShape shape = SoftmaxShape::rows(1 << 10, columns);
    const Problem problem = is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape);
    const auto policy = problem.family->space().parse("scope=cluster cluster_blocks=" + policy_text +
                                                      " min_blocks=unset");
    ASSERT_TRUE(policy);
    units.push_back(unit_of(problem, *policy));
  };
  for (const std::int64_t columns : {50256, 50257}) {
    const bool is_odd = columns % 2 != 0;
    add_cluster(DType::f16, !is_odd, columns, "4 block_threads=1024 staging=ring smem_kib=224");
    add_cluster(DType::f16, is_odd, columns, "8 block_threads=512 staging=ring smem_kib=112");
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
      add_cluster(dtype, false, columns, "8 block_threads=128 staging=direct packs_per_thread=8");
  }
  // One of few policies that take as many registers as they want.
  const auto add_tiles = [&](DType dtype, bool is_log, int lanes, std::int64_t columns) {
    const SoftmaxSpec spec{.dtype = dtype, .numerics = Numerics::reproducible};
    const SoftmaxShape shape = SoftmaxShape::rows(1 << 16, columns);
    const Problem problem = is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape);
    const auto tiles = problem.family->space().parse(
        fmt::format("scope=warp threads_per_row={} block_threads=128 staging=shared min_blocks=unset", lanes));
    ASSERT_TRUE(tiles);
    units.push_back(unit_of(problem, *tiles));
  };
  add_tiles(DType::f16, false, 1, 7);
  add_tiles(DType::f32, true, 1, 7);
  add_tiles(DType::bf16, true, 4, 50);
  add_tiles(DType::f64, false, 8, 99);
  add_tiles(DType::f32, true, 16, 271);
  add_tiles(DType::f16, true, 32, 701);

  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < units.size(); i = next++) {
      if (!test::in_share(i)) continue;
      std::string fault;
      try {
        const Binary binary = compiler.compile(units[i], "sm_90");
        for (const std::string& symbol : binary.entries) {
          const auto resources = cubin_resources(binary.code, symbol);
          if (!resources) fault = "no kernel " + symbol;
          else if (resources->local_bytes > kMostCallFrameBytes)
            fault = std::to_string(resources->local_bytes) + " bytes of local memory";
        }
      } catch (const Error& error) {
        fault = error.what();
      }
      const std::scoped_lock lock(mutex);
      EXPECT_EQ(fault, "") << units[i].name;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
}

}  // namespace
}  // namespace hone
