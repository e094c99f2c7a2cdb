#include "benchmarks/common/interleaved.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "benchmarks/common/report.h"

namespace hone::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

/// Work of one kind, such as the calls of a contestant, enqueued or captured in a graph.
struct Batch {
  std::function<void(Stream)> enqueue;
  std::unique_ptr<CapturedWork> graph = {};
};

/// The batches of one contestant.
class Batches {
 public:
  Batches(Device& device, Stream stream, const Setting& setting, const Contestant& contestant,
          const Surroundings& surroundings)
      : device_(device), stream_(stream), setting_(setting), contestant_(contestant), surroundings_(surroundings) {}

  double once_us() {
    prepare(1);
    take(calls_);  // the first launch may load code
    return std::min(take(calls_).us, take(calls_).us);
  }

  void prepare(int calls) {
    count_ = calls;
    calls_ =
        batch([this](Stream stream) { enqueue_all([&](int turn) { contestant_.enqueue(turn, stream); }, stream); });
    if (has_others()) others_ = batch([this](Stream stream) { enqueue_all([](int) {}, stream); });
  }

  void sample() {
    const double others_us = has_others() ? take(others_).us : 0;
    const Taken taken = take(calls_);
    samples_us_.push_back((taken.us - others_us) / count_);
    host_shares_.push_back(taken.host_us / taken.us);
  }

  Timing timing() const {
    return {.median_us = median(samples_us_),
            .spread_us = (quantile(samples_us_, 0.75) - quantile(samples_us_, 0.25)) / 2,
            .batches = static_cast<int>(samples_us_.size()),
            .host_share = median(host_shares_)};
  }

 private:
  struct Taken {
    double us = 0, host_us = 0;  ///< the time of a batch, and of that the time in which it was enqueued
  };

  bool has_others() const { return setting_.company == Company::others; }

  /// The calls of a batch, with kernels of others before, between and behind them.
  void enqueue_all(const std::function<void(int turn)>& call, Stream stream) const {
    for (int turn = 0; turn < count_; ++turn) {
      if (has_others()) surroundings_.other(stream);
      call(turn);
    }
    if (has_others()) surroundings_.other(stream);
  }

  Batch batch(std::function<void(Stream)> enqueue) const {
    Batch made{.enqueue = std::move(enqueue)};
    if (setting_.context == LaunchContext::graph)  // the host device calls the function again in each replay
      made.graph = device_.capture(stream_, [enqueue = made.enqueue, stream = stream_] { enqueue(stream); });
    return made;
  }

  Taken take(const Batch& batch) {
    surroundings_.make_cold(stream_);
    device_.synchronize(stream_);
    const bool waits = batch.graph || setting_.company == Company::nobody;
    std::unique_ptr<StreamHold> hold = waits ? device_.hold(stream_) : nullptr;
    Taken taken;
    taken.us = device_.time_us(stream_, [&] {
      const auto start = Clock::now();
      if (batch.graph) device_.replay(*batch.graph, stream_);
      else batch.enqueue(stream_);
      if (!waits) taken.host_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      hold.reset();
    });
    return taken;
  }

  Device& device_;
  Stream stream_;
  Setting setting_;
  const Contestant& contestant_;
  const Surroundings& surroundings_;
  int count_ = 1;  ///< calls of a batch
  Batch calls_, others_;
  std::vector<double> samples_us_, host_shares_;
};

}  // namespace

std::string name(const Setting& setting) {
  return fmt::format("{}{}", name(setting.context),
                     setting.company == Company::itself   ? ""
                     : setting.company == Company::others ? " + others"
                                                          : " alone");
}

std::vector<Timing> time_interleaved(Device& device, Stream stream, const Setting& setting,
                                     std::span<const Contestant> contestants, const Surroundings& surroundings,
                                     const TimingOptions& options) {
  std::vector<std::unique_ptr<Batches>> field;
  double once_us = options.batch_us;
  for (const Contestant& contestant : contestants) {
    field.push_back(std::make_unique<Batches>(device, stream, setting, contestant, surroundings));
    once_us = std::min(once_us, field.back()->once_us());
  }
  // As many calls of one as of another: what a batch's beginning costs is shared by all of them alike.
  const int most_calls = setting.company == Company::nobody ? 1 : options.most_calls;
  const double calls = std::clamp(options.batch_us / std::max(once_us, 0.1), 1.0, double(most_calls));
  for (const auto& one : field) one->prepare(static_cast<int>(calls));

  std::vector<Batches*> order;
  for (const auto& one : field) order.push_back(one.get());
  std::mt19937 random;
  const auto end = Clock::now() + std::chrono::duration<double, std::milli>(options.cap_ms);
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= options.least_rounds && Clock::now() >= end) break;
    std::shuffle(order.begin(), order.end(), random);
    for (Batches* one : order) one->sample();
  }

  std::vector<Timing> timings;
  for (const auto& one : field) timings.push_back(one->timing());
  return timings;
}

}  // namespace hone::benchmarks
