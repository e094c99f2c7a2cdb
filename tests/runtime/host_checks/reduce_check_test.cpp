// The reduce templates under the checks of the host device: every way to combine threads and blocks, every operation
// and dtype, with vector widths and unrolls in rotation; in several orders, at awkward sizes, aligned and not.
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/tuned_reduce.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "runtime/choose/compiled.h"
#include "runtime/families/reduce_family.h"

namespace hone::test {
namespace {

using Finish = ReduceVariant::Finish;
using Tail = ReduceVariant::Tail;

constexpr std::size_t kMaxCases = 16;
constexpr std::size_t kWorkspaceBytes = 4096;

/// One call on a slice of the input buffer.
struct Case {
  std::int64_t n = 0;
  std::int64_t first_element = 0;  ///< 1: one element beyond what vectors need
};

std::vector<Case> cases_of(std::int64_t tile) {
  return {{0, 0}, {1, 0}, {1, 1}, {31, 1}, {tile - 1, 0}, {tile, 1}, {tile + 1, 0}, {5 * tile - 3, 1}, {7 * tile + 9, 0}};
}

/// `pattern` over and over.
std::vector<std::byte> repeated(const std::vector<std::byte>& pattern, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = pattern[i % pattern.size()];
  return result;
}

/// Makes the call `index` and compares its result with the reference.
void run_case(const HostRun& run, const Candidate& candidate, const Problem& problem, const Case& one,
              std::size_t index, const std::vector<std::byte>& pattern) {
  const KernelFamily& family = *problem.family;
  const std::size_t element_bytes = info(problem.dtype).size_bytes;
  const std::size_t offset = static_cast<std::size_t>(one.first_element) * element_bytes;
  auto* const in = run.buffer<std::byte>(0) + offset;
  auto* const out = run.buffer<std::byte>(1) + index * sizeof(double);
  const std::array<void*, 2> buffers{in, out};
  LaunchList launches;
  family.encode(problem, candidate, buffers, run.buffer<void>(2), launches);
  for (const Launch& launch : launches) run.launch(launch);

  // The slice starts within the pattern: the reference wants one that starts with the slice.
  std::vector<std::byte> shifted(pattern);
  std::rotate(shifted.begin(), shifted.begin() + static_cast<std::ptrdiff_t>(offset % pattern.size()), shifted.end());
  shifted.resize(std::min(shifted.size(), static_cast<std::size_t>(one.n) * element_bytes));
  const std::size_t result_bytes = family.buffers(problem)[1].size_bytes();
  const std::vector<std::byte> inputs[] = {shifted};
  const std::vector<std::byte> outputs[] = {{out, out + result_bytes}};
  const std::string wrong = family.verify(problem, candidate, inputs, outputs);
  if (!wrong.empty()) throw Error(ErrorCode::device_failed, to_string(problem) + ": " + wrong);
}

HostCheck check_of(ReduceOp op, DType dtype, const Variant& variant, std::size_t rotation) {
  const std::int64_t tile = ReduceVariant(variant).bytes_per_tile() / static_cast<std::int64_t>(info(dtype).size_bytes);
  const std::vector<Case> cases = cases_of(tile);
  const auto problem_of = [=](std::int64_t n) { return reduce_problem(op, dtype, n, 1); };
  const Problem largest = problem_of(8 * tile);
  const auto kinds = largest.family->input_kinds(largest);
  const std::vector<std::byte> pattern = largest.family->input_pattern(largest, 0, kinds[rotation % kinds.size()]);
  const bool one_block = ReduceVariant(variant).finish == Finish::one_block;
  const Candidate candidate{variant, {one_block ? 1 : 5}};

  HostCheck check;
  check.unit = unit_of(largest, variant);
  check.buffers = {
      {"in", repeated(pattern, static_cast<std::size_t>(8 * tile + 2) * info(dtype).size_bytes)},
      {"out", std::vector<std::byte>(kMaxCases * sizeof(double))},
      {"workspace", std::vector<std::byte>(kWorkspaceBytes)}};
  check.orders = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 1}};
  check.run = [=](const HostRun& run) {
    for (std::size_t i = 0; i < cases.size(); ++i)
      run_case(run, candidate, problem_of(cases[i].n), cases[i], i, pattern);
  };
  return check;
}

class ReduceCheck : public testing::TestWithParam<std::tuple<Finish, Tail>> {};

TEST_P(ReduceCheck, IsRightInEveryOrder) {
  const auto [finish, tail] = GetParam();
  constexpr std::array<std::int32_t, 3> kVectorBytes{16, 8, 4};
  constexpr std::array<std::int32_t, 4> kUnrolls{1, 2, 4, 8};
  auto rotation = static_cast<std::size_t>(finish) * 2 + static_cast<std::size_t>(tail);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
    for (const DTypeInfo& dtype : kDTypes) {
      ++rotation;
      const auto vector_bytes = std::max(kVectorBytes[rotation % 3], static_cast<std::int32_t>(dtype.size_bytes));
      const Variant variant{rotation % 5 == 0 ? 256 : 128, vector_bytes, kUnrolls[rotation % 4],
                            static_cast<std::int32_t>(tail), static_cast<std::int32_t>(finish)};
      HostCheck check = check_of(op, dtype.dtype, variant, rotation);
      const HostCheckReport report = check_on_host(check);
      EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
    }
  }
}

std::string way_name(const testing::TestParamInfo<std::tuple<Finish, Tail>>& way) {
  constexpr std::array<std::string_view, 3> kFinishes{"OneBlock", "LastBlock", "SecondKernel"};
  constexpr std::array<std::string_view, 2> kTails{"Shuffle", "SharedTree"};
  return std::string(kFinishes[static_cast<std::size_t>(std::get<0>(way.param))])
      .append(kTails[static_cast<std::size_t>(std::get<1>(way.param))]);
}

INSTANTIATE_TEST_SUITE_P(Ways, ReduceCheck,
                         testing::Combine(testing::Values(Finish::one_block, Finish::last_block, Finish::second_kernel),
                                          testing::Values(Tail::shuffle, Tail::shared_tree)),
                         way_name);

}  // namespace
}  // namespace hone::test
