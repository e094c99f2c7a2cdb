#include "benchmarks/ladder/steps.h"

#include <gmock/gmock.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/sdk/gpu_compiler.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "benchmarks/ladder/code_lines.h"
#include "benchmarks/ladder/matrix_steps.h"

#include "tests/support/long_test.h"

namespace hone::benchmarks {
namespace {

class LadderSteps : public test::LongTest, public testing::WithParamInterface<LadderStep> {};

/// Under all checks, in several orders of threads and blocks: 0 and small integers add up exactly in any order, so that
/// every order must give the very sum. One check has buffers for each size, since every check compiles.
TEST_P(LadderSteps, AddUpRightUnderTheChecks) {
  const LadderStep& step = GetParam();
  constexpr std::array<std::int64_t, 8> kSizes{1, 31, 33, 256, 257, 4095, 4097, 70003};
  constexpr std::int64_t kMostBlocks = 5;  // so few that their loops have several rounds
  HostCheck check;
  check.unit = ladder_unit(step);
  std::vector<float> expected;
  for (const std::int64_t n : kSizes) {
    std::vector<float> in(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 7 % 11) - 3;
    expected.push_back(step.is_max ? *std::max_element(in.begin(), in.end())
                                   : std::accumulate(in.begin(), in.end(), 0.0f));
    check.buffers.push_back(CheckBuffer::of("in", in));
    check.buffers.push_back(CheckBuffer::of("out", std::vector<float>(1, 0.0f)));
    check.buffers.push_back(CheckBuffer::of("scratch", std::vector<std::byte>(ladder_scratch_bytes(step, n)), false));
  }
  check.run = [&](const HostRun& run) {
    for (std::size_t size = 0; size < kSizes.size(); ++size) {
      float* const out = run.buffer<float>(3 * size + 1);
      // Twice: the second call finds what the first one left in the scratch memory.
      for (int call = 0; call < 2; ++call) {
        *out = -1.0f;
        if (step.finish == LadderFinish::atomic) std::memset(out, ladder_start_byte(step), sizeof(float));
        const LadderBuffers buffers{run.buffer<const float>(3 * size), out, run.buffer<std::byte>(3 * size + 2)};
        for (const Launch& launch : ladder_launches(step, buffers, kSizes[size], kMostBlocks)) run.launch(launch);
        EXPECT_EQ(*out, expected[size]) << "n = " << kSizes[size];
      }
    }
  };
  const HostCheckReport report = check_on_host(check);
  EXPECT_TRUE(report.ok()) << report.failure;
}

DeviceFacts facts_of(const std::string& kind) {
  DeviceFacts facts;
  facts.kind = kind;
  return facts;
}

INSTANTIATE_TEST_SUITE_P(Of, LadderSteps, testing::ValuesIn(ladder_steps_on(facts_of("host"))),
                         [](const auto& step) { return std::string(step.param.name); });

class MatrixSteps : public test::LongTest, public testing::WithParamInterface<MatrixStep> {
 protected:
  static double expected(const std::vector<float>& in, std::int64_t columns, std::size_t i) {
    const auto row = in.begin() + static_cast<std::ptrdiff_t>(i) / columns * columns;
    const double most = *std::max_element(row, row + columns);
    double sum = 0;
    for (std::int64_t column = 0; column < columns; ++column) sum += std::exp(double{row[column]} - most);
    return std::exp(double{in[i]} - most) / sum;
  }

  static void expect_right(const std::vector<float>& in, const std::vector<float>& out, std::int64_t rows,
                           std::int64_t columns) {
    const MatrixStep& step = GetParam();
    if (step.ladder == MatrixLadder::softmax) {
      for (std::size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(out[i], expected(in, columns, i), 1e-6) << i;
    } else if (step.ladder == MatrixLadder::transpose) {
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          ASSERT_EQ(out[static_cast<std::size_t>(column * rows + row)],
                    in[static_cast<std::size_t>(row * columns + column)])
              << row << ", " << column;
    } else if (step.name == "in_order") {
      ASSERT_EQ(out, in);
    } else {
      ASSERT_THAT(out, testing::UnorderedElementsAreArray(in)) << "each element is read once";
      ASSERT_EQ(out == in, in.size() == 1);
    }
  }
};

TEST_P(MatrixSteps, AreRightUnderTheChecks) {
  constexpr std::array<std::array<int, 2>, 4> kShapes{{{1, 1}, {32, 32}, {33, 31}, {7, 300}}};
  HostCheck check;
  check.unit = matrix_unit(GetParam());
  std::vector<std::vector<float>> inputs;
  for (const auto& [rows, columns] : kShapes) {
    std::vector<float>& in = inputs.emplace_back(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 7919 % in.size()) * 0.125f;
    check.buffers.push_back(CheckBuffer::of("in", in));
    check.buffers.push_back(CheckBuffer::of("out", std::vector<float>(in.size())));
    check.buffers.push_back(
        CheckBuffer::of("scratch", std::vector<std::byte>(matrix_scratch_bytes(GetParam(), rows)), false));
  }
  check.run = [&](const HostRun& run) {
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      const MatrixBuffers buffers{run.buffer<const float>(3 * i), run.buffer<float>(3 * i + 1),
                                  run.buffer<float>(3 * i + 2)};
      for (const Launch& launch : matrix_launches(GetParam(), buffers, kShapes[i][0], kShapes[i][1]))
        run.launch(launch);
    }
  };
  const HostCheckReport report = check_on_host(check);
  ASSERT_TRUE(report.ok()) << report.failure;
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    SCOPED_TRACE(testing::Message() << kShapes[i][0] << " × " << kShapes[i][1]);
    expect_right(inputs[i], report.values<float>(3 * i + 1), kShapes[i][0], kShapes[i][1]);
  }
}

std::vector<MatrixStep> all_matrix_steps() {
  std::vector<MatrixStep> steps;
  for (const MatrixLadder ladder : {MatrixLadder::transpose, MatrixLadder::softmax, MatrixLadder::access})
    for (const MatrixStep& step : matrix_steps(ladder)) steps.push_back(step);
  return steps;
}

INSTANTIATE_TEST_SUITE_P(Of, MatrixSteps, testing::ValuesIn(all_matrix_steps()),
                         [](const auto& step) { return std::string(step.param.name); });

TEST(CodeLines, CountWhatIsIncludedOnceAndNoComments) {
  const Unit unit{.name = "",
                  .source = "#include \"a.cu\"\n",
                  .headers = {{"a.cu", "// text\n#include \"b.cuh\"\n#include \"b.cuh\"\n\nint a;\n"},
                              {"b.cuh", "#pragma once\n\n  // more\nint b;\nint c;\n"},
                              {"other.cuh", "int d;\n"}},
                  .entries = {}};
  EXPECT_EQ(code_lines(unit), 3);
}

TEST(Ladder, TheTailEffectHasAGridOfItsOwn) {
  std::vector<std::byte> scratch(4096);
  float out = 0;
  for (const LadderStep& step : ladder_steps()) {
    if (step.finish == LadderFinish::levels) continue;
    const unsigned grid = ladder_launches(step, {&out, &out, scratch.data()}, 1 << 20, 492).front().grid.x;
    EXPECT_EQ(grid, step.grid == LadderGrid::elements   ? 4096U
                    : step.grid == LadderGrid::thousand ? 1024U
                                                        : 492U)
        << step.name;
  }
}

TEST(Ladder, TheHostLeavesOutNothingButWhatIncludesHeadersOfCuda) {
  std::vector<std::string_view> left_out;
  for (const LadderStep& step : ladder_steps())
    if (!why_left_out(step, facts_of("host")).empty()) left_out.push_back(step.name);
  EXPECT_THAT(left_out, testing::ElementsAre("cooperative_groups"));
}

TEST(Ladder, CooperativeGroupsCompileWithTheHeadersOfTheToolkit) {
  const auto step = std::ranges::find(ladder_steps(), "cooperative_groups", &LadderStep::name);
  ASSERT_NE(step, ladder_steps().end());
  if (!why_left_out(*step, facts_of("cuda")).empty()) GTEST_SKIP() << why_left_out(*step, facts_of("cuda"));
  const Binary binary = compile_for_gpu(ladder_unit(*step), "sm_90");
  EXPECT_THAT(binary.entries, testing::ElementsAre("group_reduce"));
  EXPECT_FALSE(binary.code.empty());
  Unit without = ladder_unit(*step);
  without.include_folders.clear();
  EXPECT_THROW(compile_for_gpu(without, "sm_90"), Error);
}

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
