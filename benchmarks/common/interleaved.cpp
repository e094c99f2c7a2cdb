#include "benchmarks/common/interleaved.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "benchmarks/common/report.h"

namespace hone::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

/// The batches of one contestant.
class Batches {
 public:
  Batches(Device& device, Stream stream, LaunchContext context, const Contestant& contestant,
          const std::function<void(Stream)>& make_cold)
      : device_(device), stream_(stream), context_(context), contestant_(contestant), make_cold_(make_cold) {}

  double once_us() {
    prepare(1);
    take();  // the first launch may load code
    return std::min(take(), take());
  }

  void prepare(int calls) {
    calls_ = calls;
    if (context_ == LaunchContext::graph) graph_ = device_.capture(stream_, [this] { enqueue_all(); });
  }

  void sample() { samples_us_.push_back(take() / calls_); }

  Timing timing() const {
    return {.median_us = median(samples_us_),
            .spread_us = (quantile(samples_us_, 0.75) - quantile(samples_us_, 0.25)) / 2,
            .batches = static_cast<int>(samples_us_.size())};
  }

 private:
  void enqueue_all() const {
    for (int turn = 0; turn < calls_; ++turn) contestant_.enqueue(turn, stream_);
  }

  double take() {
    make_cold_(stream_);
    device_.synchronize(stream_);
    std::unique_ptr<StreamHold> hold = graph_ ? device_.hold(stream_) : nullptr;
    return device_.time_us(stream_, [&] {
      if (graph_) device_.replay(*graph_, stream_);
      else enqueue_all();
      hold.reset();
    });
  }

  Device& device_;
  Stream stream_;
  LaunchContext context_;
  const Contestant& contestant_;
  const std::function<void(Stream)>& make_cold_;
  int calls_ = 1;
  std::unique_ptr<CapturedWork> graph_;
  std::vector<double> samples_us_;
};

}  // namespace

std::vector<Timing> time_interleaved(Device& device, Stream stream, LaunchContext context,
                                     std::span<const Contestant> contestants,
                                     const std::function<void(Stream)>& make_cold, const TimingOptions& options) {
  std::vector<std::unique_ptr<Batches>> field;
  double once_us = options.batch_us;
  for (const Contestant& contestant : contestants) {
    field.push_back(std::make_unique<Batches>(device, stream, context, contestant, make_cold));
    once_us = std::min(once_us, field.back()->once_us());
  }
  // As many calls of one as of another: what a batch's beginning costs is shared by all of them alike.
  const double calls = std::clamp(options.batch_us / std::max(once_us, 0.1), 1.0, double(options.most_calls));
  for (const auto& one : field) one->prepare(static_cast<int>(calls));

  const auto end = Clock::now() + std::chrono::duration<double, std::milli>(options.cap_ms);
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= options.least_rounds && Clock::now() >= end) break;
    for (std::size_t i = 0; i < field.size(); ++i)
      field[(i + static_cast<std::size_t>(round)) % field.size()]->sample();
  }

  std::vector<Timing> timings;
  for (const auto& one : field) timings.push_back(one->timing());
  return timings;
}

}  // namespace hone::benchmarks
