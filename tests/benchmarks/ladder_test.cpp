#include "benchmarks/ladder/steps.h"
#include "benchmarks/ladder/matrix_steps.h"

#include <gmock/gmock.h>

#include <hone/host_check.h>

#include <numeric>

namespace hone::benchmarks {
namespace {

class LadderSteps : public testing::TestWithParam<LadderStep> {};

/// Under all checks, in several orders of threads and blocks: 0 and small integers add up exactly in any order, so that
/// every order must give the very sum.
TEST_P(LadderSteps, AddUpRightUnderTheChecks) {
  const LadderStep& step = GetParam();
  for (const std::int64_t n : {1, 31, 33, 256, 257, 4095, 4097, 70003}) {
    std::vector<float> in(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 7 % 11) - 3;
    const float expected = std::accumulate(in.begin(), in.end(), 0.0f);

    HostCheck check;
    check.unit = ladder_unit(step);
    check.buffers = {CheckBuffer::of("in", in), CheckBuffer::of("out", std::vector<float>(1, 0.0f)),
                     CheckBuffer::of("scratch", std::vector<std::byte>(ladder_scratch_bytes(step, n)), false)};
    constexpr std::int64_t kMostBlocks = 5;  // so few that blocks take turns
    std::vector<float> sums;
    check.run = [&](const HostRun& run) {
      float* const out = run.buffer<float>(1);
      // Twice: the second call finds what the first one left in the scratch memory.
      for (int call = 0; call < 2; ++call) {
        *out = step.finish == LadderFinish::atomic ? 0.0f : -1.0f;
        const LadderBuffers buffers{run.buffer<const float>(0), out, run.buffer<std::byte>(2)};
        for (const Launch& launch : ladder_launches(step, buffers, n, kMostBlocks)) run.launch(launch);
        sums.push_back(*out);
      }
    };
    const HostCheckReport report = check_on_host(check);
    EXPECT_TRUE(report.ok()) << "n = " << n << ": " << report.failure;
    EXPECT_THAT(sums, testing::Each(expected)) << "n = " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LadderSteps, testing::ValuesIn(ladder_steps().begin(), ladder_steps().end()),
                         [](const auto& step) { return std::string(step.param.name); });

class TransposeSteps : public testing::TestWithParam<TransposeStep> {};

TEST_P(TransposeSteps, AreRightUnderTheChecks) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {32, 32}, {33, 31}, {70, 100}}) {
    std::vector<float> in(static_cast<std::size_t>(rows * columns));
    std::iota(in.begin(), in.end(), 1.0f);
    HostCheck check;
    check.unit = transpose_unit(GetParam());
    check.buffers = {CheckBuffer::of("in", in), CheckBuffer::of("out", std::vector<float>(in.size()))};
    check.run = [rows = rows, columns = columns](const HostRun& run) {
      run.launch(transpose_launch(run.buffer<const float>(0), run.buffer<float>(1), rows, columns));
    };
    const HostCheckReport report = check_on_host(check);
    ASSERT_TRUE(report.ok()) << rows << " × " << columns << ": " << report.failure;
    const std::vector<float> out = report.values<float>(1);
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column)
        ASSERT_EQ(out[static_cast<std::size_t>(column * rows + row)],
                  in[static_cast<std::size_t>(row * columns + column)])
            << row << ", " << column << " of " << rows << " × " << columns;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, TransposeSteps, testing::ValuesIn(transpose_steps().begin(), transpose_steps().end()),
                         [](const auto& step) { return std::string(step.param.name); });

TEST(Ladder, ScratchMemoryHoldsWhatTheLaunchesUse) {
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{257}, kMostLadderElements}) {
    const std::int64_t blocks = (n + kLadderBlockThreads - 1) / kLadderBlockThreads;
    for (const LadderStep& step : ladder_steps()) {
      const std::int64_t copy = step.name == "global_tree" ? blocks * kLadderBlockThreads : 0;
      EXPECT_GE(ladder_scratch_bytes(step, n), 4 * static_cast<std::size_t>(copy + 2 * blocks)) << step.name;
      EXPECT_LT(ladder_scratch_bytes(step, n), 4 * static_cast<std::size_t>(copy + 3 * blocks) + 4096)
          << step.name << ": only one step works in a copy of the array";
    }
  }
}

TEST(Ladder, LevelsEndWithOneBlock) {
  const LadderStep& step = ladder_steps().front();
  std::vector<std::byte> scratch(ladder_scratch_bytes(step, 1000));
  float out = 0;
  const std::vector<Launch> launches = ladder_launches(step, {&out, &out, scratch.data()}, 70000, 5);
  std::vector<unsigned> grids;
  for (const Launch& launch : launches) grids.push_back(launch.grid.x);
  EXPECT_THAT(grids, testing::ElementsAre(274, 2, 1));
}

}  // namespace
}  // namespace hone::benchmarks
