// tuned_reduce() from several threads and streams at once, on a real device.
#include <thread>

#include "tests/runtime/support/device_fixture.h"

namespace hone {
namespace {

class ReduceThreads : public DeviceTest {
 protected:
  /// Every thread sums prefixes of ones in its own stream, or all in one, and checks each result.
  void sum_prefixes(Session& session, bool one_stream) {
    constexpr std::int64_t kMost = 300000;
    const auto ones = upload(std::vector<std::int32_t>(kMost, 1));
    const Stream shared = device_->create_stream();
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const Stream stream = one_stream ? shared : device_->create_stream();
        const DeviceBuffer out(device_, sizeof(std::int64_t));
        for (int i = 0; i < 50; ++i) {
          const std::int64_t n = kMost - 1000 * t - i;
          tuned_reduce(session, sum, ones.data, n, out.as<std::int64_t>(), stream);
          EXPECT_EQ(fetch(out.as<std::int64_t>(), stream), n);
        }
        if (!one_stream) device_->destroy_stream(stream);
      });
    threads.clear();
    device_->destroy_stream(shared);
  }
};

TEST_F(ReduceThreads, EachInItsOwnStream) {
  Session session(device_, quick());
  sum_prefixes(session, false);
}

TEST_F(ReduceThreads, AllInOneStream) {
  Session session(device_, quick());
  sum_prefixes(session, true);
}

TEST_F(ReduceThreads, ColdSessionsDoNotDisturbEachOther) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      Session session(device_, quick());
      const auto in = upload(random_values<double>(5000));
      const double first = tuned_reduce_and_wait(session, sum, in.data, 5000, nullptr);
      EXPECT_EQ(tuned_reduce_and_wait(session, sum, in.data, 5000, nullptr), first);
    });
}

}  // namespace
}  // namespace hone
