// Reductions refuse results that lie in their inputs, where they would be read.
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <hone/custom_reduce.h>
#include <hone/fused_reduce.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class ReduceOverlap : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    memory_ = upload(std::vector<float>(512, 1));
    in_ = memory_.data;
  }

  /// Returns the refusal of a call; "" if it is accepted.
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      return error.what();
    }
    return "";
  }

  Array<float> memory_;
  float* in_ = nullptr;
};

TEST_F(ReduceOverlap, OfRowsAndColumns) {
  Session session(device_, quick());
  const auto rows = [&](const ReduceSpec& spec, const RowsShape& shape, float* out) {
    return refusal([&] { tuned_reduce_rows(session, spec, in_, shape, out, nullptr); });
  };
  const auto columns = [&](const ReduceSpec& spec, const ColumnsShape& shape, float* out) {
    return refusal([&] { tuned_reduce_columns(session, spec, in_, shape, out, nullptr); });
  };
  for (int round = 0; round < 2; ++round) {  // on a miss and on a hit
    EXPECT_EQ(rows({}, {8, 4}, in_ + 32), "");
    EXPECT_THAT(rows({}, {8, 4}, in_ + 31), Names("tuned_reduce_rows", "'in'", "'out'", "overlap"));
    EXPECT_THAT(rows({}, {8, 4}, in_), Names("overlap"));
    EXPECT_EQ(rows({}, {4, 8, 16}, in_ + 8), "") << "in a gap, which has no effect";
    EXPECT_THAT(rows({}, {4, 8, 16}, in_ + 13), Names("overlap"));
    EXPECT_THAT(rows({.op = ReduceOp::mean_variance}, {4, 8, 16}, in_ + 9), Names("overlap")) << "two values each";
    EXPECT_EQ(columns({}, {.outer = 2, .reduced = 4, .inner = 8}, in_ + 64), "");
    EXPECT_THAT(columns({}, {.outer = 2, .reduced = 4, .inner = 8}, in_ + 63),
                Names("tuned_reduce_columns", "'in'", "'out'", "overlap"));
    EXPECT_THAT(columns({.op = ReduceOp::argmax}, {.outer = 2, .reduced = 4, .inner = 8}, in_ + 40), Names("overlap"));
    EXPECT_THAT(columns({}, {.reduced = 8, .inner = 1}, in_ + 7), Names("overlap")) << "a column without gaps is a row";
  }
  EXPECT_EQ(fetch(in_ + 300), 1) << "nothing that was refused has run";
}

/// The results of another pitch than the input's may lie before it.
TEST_F(ReduceOverlap, OfResultsThatReachIntoTheInput) {
  Session session(device_, quick());
  const auto rows = [&](float* from, float* out, ReduceOp op) {
    return refusal([&] { tuned_reduce_rows(session, ReduceSpec{.op = op}, from, {8, 4}, out, nullptr); });
  };
  EXPECT_EQ(rows(in_ + 16, in_, ReduceOp::argmin), "");
  EXPECT_THAT(rows(in_ + 16, in_ + 2, ReduceOp::argmin), Names("overlap")) << "eight results of 8 bytes";
  EXPECT_EQ(rows(in_ + 16, in_, ReduceOp::minmax), "");
  EXPECT_THAT(rows(in_ + 16, in_ + 1, ReduceOp::minmax), Names("overlap")) << "sixteen results";
}

TEST_F(ReduceOverlap, OfArrays) {
  Session session(device_, quick());
  const auto reduce = [&](const ReduceSpec& spec, float* out) {
    return refusal([&] { tuned_reduce(session, spec, in_, 64, out, nullptr); });
  };
  EXPECT_EQ(reduce({}, in_ + 64), "");
  EXPECT_THAT(reduce({}, in_ + 63), Names("tuned_reduce", "'in'", "'out'", "overlap"));
  EXPECT_THAT(reduce({}, in_), Names("overlap"));
  EXPECT_EQ(refusal([&] { tuned_reduce(session, ReduceSpec{}, in_, 0, in_, nullptr); }), "") << "nothing is read";
  const auto dot = [&](float* out) {
    return refusal([&] { tuned_dot(session, ReduceSpec{.op = ReduceOp::dot}, in_, in_ + 128, 64, out, nullptr); });
  };
  EXPECT_EQ(dot(in_ + 64), "");
  EXPECT_THAT(dot(in_ + 5), Names("tuned_dot", "'a'", "overlap"));
  EXPECT_THAT(dot(in_ + 130), Names("tuned_dot", "'b'", "overlap"));
  const CustomReduction custom({.name = "total", .map = "x", .combine = "a + b", .identity = "0"}, DType::f32);
  const DType f32 = DType::f32;
  EXPECT_THAT(refusal([&] { tuned_reduce(session, custom, f32, in_, 64, in_ + 2, nullptr); }), Names("overlap"));
  const FusedReduction fused({ReduceOp::sum, ReduceOp::minmax});
  const auto fuse = [&](void* sum, void* extremes) {
    return refusal([&] { tuned_reduce(session, fused, f32, in_, 64, std::array{sum, extremes}, nullptr); });
  };
  EXPECT_EQ(fuse(in_ + 66, in_ + 64), "");
  EXPECT_THAT(fuse(in_ + 65, in_ + 64), Names("'sum'", "'minmax'", "overlap"));
  EXPECT_THAT(fuse(in_ + 66, in_ + 62), Names("'in'", "overlap"));
}

TEST_F(ReduceOverlap, OfSegments) {
  Session session(device_, quick());
  const auto offsets = upload(std::vector<std::int32_t>{0, 8, 8, 32, 0, 0, 0, 0});
  const auto reduce = [&](float* out) {
    return refusal(
        [&] { tuned_reduce_segments(session, ReduceSpec{}, in_, 32, offsets.data, 3, out, nullptr); });
  };
  auto* const behind = reinterpret_cast<float*>(offsets.data);
  EXPECT_EQ(reduce(in_ + 32), "");
  EXPECT_THAT(reduce(in_ + 31), Names("tuned_reduce_segments", "'in'", "'out'", "overlap"));
  EXPECT_EQ(reduce(behind + 4), "");
  EXPECT_THAT(reduce(behind + 3), Names("'offsets'", "'out'", "overlap"));
}

}  // namespace
}  // namespace hone
