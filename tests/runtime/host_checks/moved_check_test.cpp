// The transpose and copy templates under the checks of the host device: every element size, width of vectors and order
// of tiles, in place and not, in several orders of threads.
#include <gtest/gtest.h>

#include <hone/copy.h>
#include <hone/host_check.h>
#include <hone/transpose.h>

#include <array>
#include <vector>

#include "runtime/choose/compiled.h"
#include "runtime/families/transpose/transpose_policy.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

DeviceFacts host_facts() {
  DeviceFacts facts;
  facts.kind = "host";
  return facts;
}

/// Runs `largest` and the smaller problems that verify it, in few blocks, so that each moves several tiles.
void expect_clean(const Problem& largest, const Policy& policy) {
  const KernelFamily& family = *largest.family;
  const std::string what = to_string(largest) + " " + family.space().to_string(policy);
  ASSERT_TRUE(family.is_valid(ProblemClass(largest), policy, host_facts()).empty()) << what;
  const std::vector<Problem> problems = family.verifier().verified_problems(largest);
  const std::vector<BufferSpec> specs = family.buffers(largest);
  const std::vector<std::byte> pattern = family.verifier().input_pattern(largest, 0, "random");
  std::vector<std::byte> in(specs[0].size_bytes());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = pattern[i % pattern.size()];

  HostCheck check;
  check.unit = unit_of(largest, policy);
  check.looks_for_lost_updates = !kSanitized;
  check.buffers = {CheckBuffer::of("in", in)};
  for (std::size_t i = 0; i < problems.size(); ++i)
    check.buffers.push_back(CheckBuffer::of("out", std::vector<std::byte>(specs[1].size_bytes())));
  if (kSanitized) check.orders = {HostOrder{}};
  const bool in_place = specs[1].in_place_of == 0;
  check.run = [&](const HostRun& run) {
    for (std::size_t i = 0; i < problems.size(); ++i) {
      auto* const out = run.buffer<std::byte>(1 + i);
      if (in_place) std::memcpy(out, in.data(), in.size());
      const std::array<void*, 2> buffers{in_place ? out : run.buffer<std::byte>(0), out};
      LaunchList launches;
      family.encode(problems[i], {policy, {3}}, buffers, nullptr, launches);
      for (const Launch& launch : launches) run.launch(launch);
    }
  };
  const HostCheckReport report = check_on_host(check);
  ASSERT_TRUE(report.ok()) << what << ": " << report.failure;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::size_t bytes = family.buffers(problems[i])[1].size_bytes();
    std::vector<std::vector<std::byte>> outputs{
        {report.buffers[1 + i].begin(), report.buffers[1 + i].begin() + static_cast<std::ptrdiff_t>(bytes)}};
    EXPECT_EQ(family.verifier().verify(problems[i], {policy, {3}}, std::span(&pattern, 1), outputs), "") << what;
  }
}

TEST(MovedCheck, TransposesAreClean) {
  struct Case {
    std::size_t element_bytes;
    std::int64_t rows, columns;
    bool in_place;
    TransposePolicy policy;
  };
  constexpr Staging kShared = Staging::shared, kShifted = Staging::shifted, kStrips = Staging::strips;
  using Vector = TransposePolicy::Vector;
  using Aspect = TransposePolicy::Aspect;
  using Order = TransposePolicy::Order;
  std::size_t turn = 0;
  for (const Case& one : {Case{4, 100, 68, false, {kShared, Vector::widest, 8, Aspect::square, 128, Order::rows}},
                          Case{4, 101, 67, false, {kShared, Vector::widest, 4, Aspect::tall, 64, Order::columns}},
                          Case{2, 200, 264, false, {kShared, Vector::widest, 16, Aspect::square, 128, Order::groups}},
                          Case{2, 301, 7, false, {kShared, Vector::widest, 4, Aspect::tall, 128, Order::rows}},
                          Case{2, 304, 8, false, {kShared, Vector::narrow, 8, Aspect::square, 128, Order::rows}},
                          Case{1, 208, 304, false, {kShared, Vector::widest, 16, Aspect::wide, 64, Order::columns}},
                          Case{8, 60, 70, false, {kShared, Vector::widest, 4, Aspect::square, 64, Order::groups}},
                          Case{16, 33, 40, false, {kShared, Vector::widest, 4, Aspect::square, 128, Order::rows}},
                          Case{2, 131, 199, false, {kShifted, Vector::widest, 16, Aspect::square, 256, Order::columns}},
                          Case{4, 101, 67, false, {kShifted, Vector::widest, 16, Aspect::tall, 128, Order::rows}},
                          Case{2, 2, 3, false, {kShifted, Vector::widest, 16, Aspect::square, 128, Order::rows}},
                          Case{2, 31, 1001, false, {kStrips, Vector::widest, 8, Aspect::square, 128, Order::rows}},
                          Case{4, 6, 1999, false, {kStrips, Vector::widest, 8, Aspect::square, 128, Order::rows}},
                          Case{2, 999, 31, false, {kStrips, Vector::widest, 8, Aspect::square, 256, Order::rows}},
                          Case{1, 2999, 12, false, {kStrips, Vector::widest, 8, Aspect::square, 128, Order::rows}},
                          Case{4, 100, 100, true, {kShared, Vector::widest, 8, Aspect::square, 64, Order::rows}},
                          Case{2, 97, 97, true, {kShared, Vector::widest, 4, Aspect::square, 64, Order::rows}}}) {
    if (!in_share(turn++)) continue;
    const Problem problem = transpose_problem(
        {.element_bytes = one.element_bytes, .rows = one.rows, .columns = one.columns}, kMaxAlignment, one.in_place);
    expect_clean(problem, Policy::of(one.policy));
  }
}

TEST(MovedCheck, CopiesAreClean) {
  expect_clean(copy_problem({.element_bytes = 4, .columns = 5003}), {128, 4, 1});
  expect_clean(copy_problem({.element_bytes = 2, .rows = 20, .columns = 131, .in_pitch = 133, .out_pitch = 141}),
               {128, 2, 0});
}

}  // namespace
}  // namespace hone::test
