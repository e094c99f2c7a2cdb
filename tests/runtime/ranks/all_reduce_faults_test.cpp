#include <gmock/gmock.h>

#include <thread>

#include <hone/all_softmax.h>
#include <hone/error.h>

#include "tests/runtime/ranks/ranks.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Names;

class AllReduceFaults : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (IsSkipped()) return;
    if (ranks() < 2) GTEST_SKIP() << "needs two ranks";
    in_ = DeviceBuffer(device_, 4000);
    out_ = DeviceBuffer(device_, 64);
    std::fill_n(in_.as<float>(), 1000, 1.0f);
  }

  Error failure_of(const ReduceSpec& spec, const void* in, const RowsShape& shape) {
    try {
      tuned_all_reduce_rows(*session_, *communicator_, spec, in, shape, out_.data(), nullptr);
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCode::not_found, "nothing was thrown"};
  }

  /// The communicator is in step on all ranks.
  void expect_works() {
    tuned_all_reduce(*session_, *communicator_, sum, in_.as<float>(), 1000, out_.as<float>(), nullptr);
    EXPECT_EQ(*out_.as<float>(), static_cast<float>(1000 * ranks()));
  }

  DeviceBuffer in_, out_;
};

TEST_F(AllReduceFaults, OfDifferentOperationsNameTheRanks) {
  const ReduceOp op = rank() == 1 ? ReduceOp::max : ReduceOp::sum;
  const Error error = failure_of({.op = op}, in_.data(), {.rows = 4, .columns = 100});
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), Names("rank 0 for sum of f32", "rank 1 for max of f32"));
  expect_works();
}

TEST_F(AllReduceFaults, OfDifferentDtypesAndRowsNameTheRanks) {
  const DType dtype = rank() == 1 ? DType::i32 : DType::f32;
  EXPECT_THAT(failure_of({.dtype = dtype}, in_.data(), {.rows = 4, .columns = 100}).what(),
              Names("rank 0 for sum of f32", "rank 1 for sum of i32"));
  const RowsShape shape{.rows = rank() == 1 ? 5 : 4, .columns = 100};
  EXPECT_THAT(failure_of({}, in_.data(), shape).what(), Names("4 rows", "5 rows"));
  expect_works();
}

TEST_F(AllReduceFaults, OfOneRankAreKnownToAll) {
  const bool is_culprit = rank() == 1;
  const Error error = failure_of({}, is_culprit ? nullptr : in_.data(), {.rows = 4, .columns = 100});
  if (is_culprit) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), Names("'in' is null"));
  } else {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("rank 1 failed", "'in' is null"));
  }
  expect_works();
}

TEST_F(AllReduceFaults, OfMemoryThatIsNotTheDevicesAreKnownToAll) {
  SessionOptions strict = session_->options();
  strict.validate_pointers = true;
  Session validating(device_, strict);
  const bool is_culprit = rank() == 1;
  const std::vector<float> on_host(100, 1);
  const float* const in = is_culprit ? on_host.data() : in_.as<float>();
  try {
    tuned_all_reduce(validating, *communicator_, sum, in, 100, out_.as<float>(), nullptr);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), is_culprit ? ErrorCode::invalid_argument : ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("'in' at", "host memory"));
  }
  expect_works();
}

TEST_F(AllReduceFaults, OfARankThatDoesNotCallEndTheOthersInTime) {
  MpiCommunicator impatient(MPI_COMM_WORLD, {.checked = true, .timeout = milliseconds(300)});
  const auto begin = steady_clock::now();
  if (rank() == 1) {
    std::this_thread::sleep_for(milliseconds(1500));
  } else {
    const auto call = [&] {
      tuned_all_reduce(*session_, impatient, sum, in_.as<float>(), 1000, out_.as<float>(), nullptr);
    };
    EXPECT_THROW(call(), Error);
    EXPECT_LT(steady_clock::now() - begin, milliseconds(1400));
    EXPECT_THROW(call(), Error);  // ranks are out of step
  }
  expect_works();  // others are not affected
}

TEST_F(AllReduceFaults, OfAnUncheckedCommunicatorAreTheSame) {
  MpiCommunicator unchecked(MPI_COMM_WORLD, {.checked = false});
  tuned_all_reduce(*session_, unchecked, sum, in_.as<float>(), 1000, out_.as<float>(), nullptr);
  EXPECT_EQ(*out_.as<float>(), static_cast<float>(1000 * ranks()));
  EXPECT_THROW(tuned_all_reduce(*session_, unchecked, sum, static_cast<float*>(nullptr), 1, out_.as<float>(), nullptr),
               Error);
}

TEST_F(AllReduceFaults, OfDifferentScalesAndNumericsNameTheRanks) {
  const auto failure = [&](const SoftmaxSpec& spec) -> std::string {
    try {
      tuned_all_softmax(*session_, *communicator_, spec, in_.data(), SoftmaxShape::rows(2, 5), in_.data(), nullptr);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(failure({.scale = rank() == 1 ? 0.5 : 2.0}), Names("scale 2", "scale 0.5"));
  EXPECT_THAT(failure({.numerics = rank() == 1 ? Numerics::reproducible : Numerics::fast}),
              Names("rank 1 for softmax of f32 in f32 to f32, reproducible"));
  expect_works();
}

TEST_F(AllReduceFaults, OfNumbersByRowAreRefused) {
  const ReduceSpec counted{.op = ReduceOp::mean, .nan = NanPolicy::ignore};
  EXPECT_THAT(failure_of(counted, in_.data(), {.rows = 2, .columns = 5}).what(), Names("NanPolicy::propagate"));
  EXPECT_THAT(failure_of({.op = ReduceOp::dot}, in_.data(), {.rows = 2, .columns = 5}).what(), Names("dot"));
  EXPECT_THAT(failure_of({}, in_.data(), {.rows = 2, .columns = -1}).what(), Names("negative"));
}

}  // namespace
}  // namespace hone
