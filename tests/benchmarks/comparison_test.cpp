#include "benchmarks/sweep/comparison.h"

#include <gmock/gmock.h>

#include <hone/sdk/forwarding_device.h>
#include <hone/tuned_reduce.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>

namespace hone::benchmarks {
namespace {

/// A peer that adds up on the CPU, and may be told to be wrong.
class SerialSum final : public Peer {
 public:
  explicit SerialSum(float error) : error_(error) {}
  std::string_view name() const override { return "serial"; }
  std::string version() const override { return "1"; }
  std::unique_ptr<PeerCall> plan(const PeerProblem& problem) override {
    if (problem.operation != "sum" || problem.dtype != DType::f32) return nullptr;
    return std::make_unique<Call>(problem.n, error_);
  }

 private:
  class Call final : public PeerCall {
   public:
    Call(std::int64_t n, float error) : n_(n), error_(error) {}
    void enqueue(std::span<const void* const> inputs, Stream) override {
      const float* const in = static_cast<const float*>(inputs[0]);
      sum_ = std::accumulate(in, in + n_, 0.0) + error_;
    }
    std::vector<long double> result(Stream) override { return {sum_}; }

   private:
    std::int64_t n_;
    double error_;
    double sum_ = 0;
  };
  float error_;
};

SessionOptions untuned() {
  SessionOptions options;
  options.on_miss = MissPolicy::heuristic;
  return options;
}

std::vector<Row> compare(float error, const Setting& setting) {
  Session session(Device::open("host"), untuned());
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<SerialSum>(error));
  const Cell cell{.operation = static_cast<std::uint8_t>(ReduceOp::sum),
                  .dtype = DType::f32,
                  .n = 1001,
                  .setting = setting,
                  .offsets = {0, 1, 7}};
  Comparison comparison(session, std::move(peers), {cell}, {.batch_us = 1, .rounds = 2, .cap_ms = 1});
  return comparison.run(cell);
}

TEST(Comparison, TimesEveryoneAtEveryOffset) {
  for (const Setting& setting : {Setting{LaunchContext::stream}, Setting{LaunchContext::graph},
                                 Setting{LaunchContext::graph, Company::nobody}}) {
    const std::vector<Row> rows = compare(0, setting);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].offset, 0);
    EXPECT_EQ(rows[1].offset, 1);
    EXPECT_EQ(rows[2].offset, 7);
    for (const Row& row : rows) {
      EXPECT_EQ(row.source, "model");
      EXPECT_EQ(row.bytes, 1001 * 4 + 4);
      EXPECT_GT(row.hone.median_us, 0);
      EXPECT_EQ(row.hone.batches, 2);
      ASSERT_EQ(row.peers.size(), 1u);
      EXPECT_TRUE(row.peers[0].agrees);
      EXPECT_DOUBLE_EQ(row.ratio_to("serial"), row.peers[0].timing.median_us / row.hone.median_us);
      EXPECT_TRUE(std::isnan(row.ratio_to("CUB")));
    }
  }
}

TEST(Comparison, SaysWhoHasAnotherResult) {
  for (const Row& row : compare(100, {LaunchContext::stream, Company::others})) EXPECT_FALSE(row.peers.at(0).agrees);
}

TEST(InterleavedTiming, BatchesAreAsLongAsAskedAndCountTurnsFromZero) {
  const auto device = Device::open("host");
  std::vector<int> turns;
  const std::vector<Contestant> contestants{{"one", [&](int turn, Stream) { turns.push_back(turn); }}};
  int colds = 0;
  const std::function<void(Stream)> make_cold = [&](Stream) { ++colds; };
  const std::vector<Timing> timings = time_interleaved(*device, nullptr, {}, contestants, {make_cold},
                                                       {.batch_us = 1e6, .most_calls = 7, .rounds = 3, .cap_ms = 1e6});
  EXPECT_EQ(timings.at(0).batches, 3);
  EXPECT_EQ(colds, 3 + 3) << "before each batch, the three that measure its length included";
  EXPECT_THAT(std::vector<int>(turns.end() - 7, turns.end()), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(turns.size(), 3u + 3 * 7);
}

/// Who is enqueued, in order, in a batch of at most three calls: 'c' a call, 'o' a kernel of others.
std::string enqueued_in(Company company, LaunchContext context) {
  const auto device = Device::open("host");
  std::string all;
  const std::vector<Contestant> contestants{{"one", [&](int, Stream) { all += 'c'; }}};
  const Surroundings surroundings{.make_cold = [](Stream) {}, .other = [&](Stream) { all += 'o'; }};
  time_interleaved(*device, nullptr, {context, company}, contestants, surroundings,
                   {.batch_us = 1e6, .most_calls = 3, .rounds = 1, .cap_ms = 1e6});
  return all;
}

TEST(InterleavedTiming, CallsHaveTheCompanyThatIsAskedFor) {
  EXPECT_THAT(enqueued_in(Company::itself, LaunchContext::stream), testing::EndsWith("ccc"));
  EXPECT_THAT(enqueued_in(Company::others, LaunchContext::stream), testing::EndsWith("oooo" "ocococo"));
  EXPECT_EQ(enqueued_in(Company::nobody, LaunchContext::stream), "cccc") << "three to see how long one takes";
  EXPECT_THAT(enqueued_in(Company::others, LaunchContext::graph), testing::HasSubstr("ocococo"));
}

/// A device on which work takes as long as it says.
class ToldTimes final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  double time_us(Stream, const std::function<void()>& work) override {
    told_us_ = 0;
    work();
    return told_us_;
  }
  void take(double us) { told_us_ += us; }

 private:
  double told_us_ = 0;
};

TEST(InterleavedTiming, AmongOthersItIsWhatACallAdds) {
  ToldTimes device(Device::open("host"));
  const std::vector<Contestant> contestants{{"one", [&](int, Stream) { device.take(3); }}};
  const Surroundings surroundings{.make_cold = [](Stream) {}, .other = [&](Stream) { device.take(20); }};
  const auto timings =
      time_interleaved(device, nullptr, {LaunchContext::stream, Company::others}, contestants, surroundings,
                       {.batch_us = 1e4, .most_calls = 8, .rounds = 5, .cap_ms = 1e6});
  EXPECT_DOUBLE_EQ(timings.at(0).median_us, 3);
}

/// The host's share of calls that take so long.
double host_share(double call_us, const Setting& setting) {
  ToldTimes device(Device::open("host"));
  const std::vector<Contestant> contestants{{"one", [&](int, Stream) {
                                               std::this_thread::sleep_for(std::chrono::microseconds(200));
                                               device.take(call_us);
                                             }}};
  const TimingOptions options{.batch_us = 1, .rounds = 3, .cap_ms = 1e6};
  return time_interleaved(device, nullptr, setting, contestants, {[](Stream) {}}, options).at(0).host_share;
}

TEST(InterleavedTiming, CallsThatAreSlowerThanTheirLaunchesLeaveTheHostAhead) {
  EXPECT_GE(host_share(200, {}), 1);
  EXPECT_LT(host_share(1e6, {}), 0.5);
  EXPECT_EQ(host_share(200, {LaunchContext::graph}), 0) << "the batch is enqueued beforehand";
  EXPECT_EQ(host_share(200, {LaunchContext::stream, Company::nobody}), 0);
}

}  // namespace
}  // namespace hone::benchmarks
