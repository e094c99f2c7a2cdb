// Plan::launch() on a real device: members of the planned class are served, any other call is told what differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hone/reduce_axis.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class PlanTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    session_ = std::make_unique<Session>(device_, quick());
    in_ = upload(std::vector<float>(kMost, 1.0f));
    out_ = DeviceBuffer(device_, 64);
  }

  static Problem sum(std::int64_t n, std::uint32_t alignment = kMaxAlignment) {
    return reduce_problem(ReduceOp::sum, DType::f32, n, alignment);
  }

  float launch(const Plan& plan, const Problem& problem) {
    plan.launch(problem, std::array<void*, 2>{in_.data, out_.data()}, nullptr);
    return fetch(out_.as<float>());
  }

  /// The message with which the plan refuses `problem`; it must leave the output as it is.
  std::string refusal(const Plan& plan, const Problem& problem) {
    device_->fill_bytes(out_.data(), 0, 64, nullptr);
    try {
      launch(plan, problem);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(fetch(out_.as<double>()), 0);
      return error.what();
    }
    return "it was launched";
  }

  static constexpr std::int64_t kMost = 6000;
  std::unique_ptr<Session> session_;
  Array<float> in_;
  DeviceBuffer out_;
};

TEST_F(PlanTest, ServesEveryMemberOfItsClassInBothContextsAndBetterAligned) {
  const Plan plan = session_->make_plan(sum(5000, 4));
  const SizeRange sizes = plan.winner().sizes[0];
  ASSERT_LE(sizes.last, kMost);
  for (const std::int64_t n : {sizes.first, std::int64_t{5000}, sizes.last})
    for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph})
      for (const std::uint32_t alignment : {4u, 16u}) {
        Problem problem = sum(n, alignment);
        problem.launch_context = context;
        EXPECT_EQ(launch(plan, problem), static_cast<float>(n));
      }
}

TEST_F(PlanTest, ACallOfAnotherClassIsToldWhatDiffers) {
  struct Case {
    std::function<void(Problem&)> change;
    std::vector<const char*> words;
  };
  const std::vector<Case> cases{
      {[](Problem& p) { p.operation = static_cast<std::uint8_t>(ReduceOp::max); }, {"operation", "max", "sum"}},
      {[](Problem& p) { p.dtype = DType::f16; }, {"dtype", "f16", "f32"}},
      {[](Problem& p) { p.accumulator = DType::f64; }, {"accumulator", "f64"}},
      {[](Problem& p) { p.result = DType::f64; }, {"result", "f64"}},
      {[](Problem& p) { p.numerics = Numerics::reproducible; }, {"numerics", "reproducible", "fast"}},
      {[](Problem& p) { p.nan = NanPolicy::ignore; }, {"NaN policy", "ignore", "propagate"}},
      {[](Problem& p) { p.alignment = 4; }, {"alignment", "4 bytes", "16 bytes"}},
      {[](Problem& p) { p.extents[0] = 9999; }, {"size class of n"}},
      {[](Problem& p) { p.extents[1] = 2; }, {"extent 1"}},
      {[](Problem& p) { p.extents[0] = -1; }, {"size class of n"}},
      {[](Problem& p) { p = reduce_rows_problem({}, {.rows = 1, .columns = 5000}, kMaxAlignment); },
       {"family", "reduce_rows"}},
  };
  const Plan plan = session_->make_plan(sum(5000));
  for (const Case& each : cases) {
    Problem problem = sum(5000);
    each.change(problem);
    const std::string why = refusal(plan, problem);
    for (const char* const word : each.words) EXPECT_THAT(why, Names(word));
  }
}

TEST_F(PlanTest, SeveralDifferencesAreAllNamed) {
  const Plan plan = session_->make_plan(sum(5000));
  Problem problem = sum(100, 4);
  problem.result = DType::f64;
  EXPECT_THAT(refusal(plan, problem), Names("result", "alignment", "size class of n"));
}

TEST_F(PlanTest, ANegativeExtentIsNoMemberOfTheSmallestClass) {
  const Plan plan = session_->make_plan(sum(5));
  EXPECT_THAT(refusal(plan, sum(-5)), Names("negative"));
}

TEST_F(PlanTest, EachExtentOfAShapeCounts) {
  const auto rows = [](std::int64_t count, std::int64_t columns) {
    return reduce_rows_problem({}, {.rows = count, .columns = columns}, kMaxAlignment);
  };
  const Plan plan = session_->make_plan(rows(8, 64));
  EXPECT_EQ(launch(plan, rows(8, 68)), 68);
  EXPECT_THAT(refusal(plan, rows(30, 64)), Names("size class", "rows"));
  EXPECT_THAT(refusal(plan, rows(8, 300)), Names("size class", "columns"));
}

}  // namespace
}  // namespace hone
