// Calls of every family that several threads make in one stream at once, on a real device.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <hone/copy.h>
#include <hone/custom_reduce.h>
#include <hone/fused_reduce.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>
#include <hone/softmax.h>
#include <hone/transpose.h>

#include "tests/runtime/support/device_fixture.h"

namespace hone {
namespace {

constexpr std::int64_t kElements = 1'000'000;
constexpr int kCallsOfEach = 30, kCallsOnHost = 10;

/// A call on ones, by one thread, and what each of its results is.
struct Caller {
  std::string name;
  std::function<Choice(void* out, Stream stream)> call;
  std::size_t results = 1;
  float expected = 0;
};

class SharedStream : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!device_) return;
    ones_ = upload(std::vector<float>(kElements, 1));
    std::vector<std::int32_t> offsets(kElements / 10 + 1);
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int32_t>(10 * i);
    offsets_ = upload(offsets);
  }

  std::vector<Caller> callers(Session& session) const {
    const float* const in = ones_.data;
    const auto n = static_cast<float>(kElements);
    const auto to = [](void* out) { return static_cast<float*>(out); };
    return {
        {"reduce", [=, &session](void* out, Stream s) { return tuned_reduce(session, sum, in, kElements, to(out), s); },
         1, n},
        {"reduce mean",
         [=, &session](void* out, Stream s) { return tuned_reduce(session, mean, in, kElements, to(out), s); }, 1, 1},
        {"softmax",
         [=, &session](void* out, Stream s) {
           return tuned_softmax(session, in, SoftmaxShape::array(kElements), to(out), s);
         },
         kElements, 1 / n},
        {"softmax_columns",
         [=, &session](void* out, Stream s) {
           return tuned_softmax(session, in, SoftmaxShape::columns(kElements / 8, 8), to(out), s);
         },
         kElements, 8 / n},
        {"reduce_rows",
         [=, &session](void* out, Stream s) {
           return tuned_reduce_rows(session, mean, in, {.rows = 4, .columns = kElements / 4}, to(out), s);
         },
         4, 1},
        {"reduce_columns",
         [=, &session](void* out, Stream s) {
           return tuned_reduce_columns(session, sum, in, {.reduced = kElements / 8, .inner = 8}, to(out), s);
         },
         8, n / 8},
        {"segmented_reduce",
         [=, this, &session](void* out, Stream s) {
           return tuned_reduce_segments(session, sum, in, kElements, offsets_.data, kElements / 10, to(out), s);
         },
         kElements / 10, 10},
        {"transpose",
         [=, &session](void* out, Stream s) {
           return tuned_transpose(session, in, 1000, kElements / 1000, to(out), s);
         },
         kElements, 1},
        {"copy", [=, &session](void* out, Stream s) { return tuned_copy(session, in, kElements, to(out), s); },
         kElements, 1},
    };
  }

  Array<float> ones_;
  Array<std::int32_t> offsets_;
};

TEST_F(SharedStream, NoLaunchComesBetweenThoseOfACall) {
  Session session(device_, quick());
  const std::vector<Caller> all = callers(session);
  const int calls = is_cuda() ? kCallsOfEach : kCallsOnHost;
  const Stream stream = device_->create_stream();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 2 * all.size(); ++i)
      threads.emplace_back([&, i, this] {
        const Caller& caller = all[i % all.size()];
        const DeviceBuffer out(device_, caller.results * sizeof(float));
        std::vector<float> results(caller.results);
        caller.call(out.data(), stream);
        for (int call = 0; call < calls; ++call) {
          device_->fill_bytes(out.data(), 0x77, out.size_bytes(), stream);
          caller.call(out.data(), stream);
          device_->copy_to_host(results.data(), out.data(), out.size_bytes(), stream);
          device_->synchronize(stream);
          const auto wrong = std::find_if(results.begin(), results.end(), [&](float result) {
            return !(std::abs(result - caller.expected) <= 1e-5f * caller.expected);
          });
          if (wrong == results.end()) continue;
          ADD_FAILURE() << caller.name << ", call " << call << ": result " << wrong - results.begin() << " is "
                        << *wrong << " instead of " << caller.expected;
          return;
        }
      });
  }
  device_->destroy_stream(stream);
}

/// Else the test above would be about nothing.
TEST_F(SharedStream, SomeOfTheseCallsAreOfTwoLaunchesAndSomeOfOneWithAWorkspace) {
  Session session(device_, quick());
  int of_two = 0, of_one = 0;
  for (const Problem& problem :
       {softmax_problem({.dtype = DType::f32, .result = DType::f32}, SoftmaxShape::array(kElements)),
        reduce_problem(ReduceOp::sum, DType::f32, kElements)}) {
    const Candidate candidate = session.prepare(problem).winner->candidate;
    const int launches = problem.family->shape(problem, candidate.policy).launches;
    of_two += launches == 2;
    of_one += launches == 1 && problem.family->workspace_bytes(problem, candidate) > 0;
  }
  EXPECT_EQ(of_two, is_cuda() ? of_two : 1);
  EXPECT_GE(of_two + of_one, 1);
}

TEST_F(SharedStream, AFailedLaunchLeavesAUsableWorkspace) {
  if (is_cuda()) GTEST_SKIP() << "a kernel that fails on a GPU leaves no context to launch in";
  Session session(device_, quick());
  const auto values = upload(std::vector<std::int32_t>(5000, 1));
  std::vector<std::int32_t> with_zero(5000, 1);
  with_zero[4000] = 0;
  const auto bad = upload(with_zero);
  const CustomReduction shares({.name = "shares", .map = "600 / x", .combine = "a + b", .identity = "0"}, DType::i32);
  const DeviceBuffer out(device_, 8);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(tuned_reduce(session, shares, bad.data, 5000, out.as<std::int32_t>(), nullptr), Error);
    tuned_reduce(session, sum, values.data, 5000, out.as<std::int64_t>(), nullptr);
    EXPECT_EQ(fetch(out.as<std::int64_t>()), 5000);
    tuned_reduce(session, shares, values.data, 5000, out.as<std::int32_t>(), nullptr);
    EXPECT_EQ(fetch(out.as<std::int32_t>()), 5000 * 600);
  }
}

TEST_F(SharedStream, StreamsAreDistinctWhileTheyExist) {
  const Stream one = device_->create_stream();
  const Stream other = device_->create_stream();
  EXPECT_NE(device_->stream_state(one).id, device_->stream_state(other).id);
  EXPECT_NE(device_->stream_state(one).id, device_->stream_state(nullptr).id);
  device_->destroy_stream(one);
  device_->destroy_stream(other);
}

}  // namespace
}  // namespace hone
