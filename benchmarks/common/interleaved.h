// time_interleaved(): contestants timed side by side, call by call in a stream or replayed from graphs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/problem.h>

namespace hone::benchmarks {

/// One who takes part: enqueues one call on the stream given. `turn` counts calls up from 0 within a batch, so that
/// each can read another copy of the input.
struct Contestant {
  std::string name;
  std::function<void(int turn, Stream stream)> enqueue;
};

/// The company of a call. Calls that follow each other may overlap, where one is launched while the last one ends; the
/// others are what a program sees that calls something else in between.
enum class Company {
  itself,  ///< other calls of the same contestant
  others,  ///< a kernel of Surroundings::other before and behind each call
  nobody,  ///< one call at a time, on a device that has nothing to do
};
constexpr std::string_view name(Company company) {
  return company == Company::itself ? "itself" : company == Company::others ? "others" : "nobody";
}

/// How calls are launched, and what among.
struct Setting {
  LaunchContext context = LaunchContext::stream;
  Company company = Company::itself;

  auto operator<=>(const Setting&) const = default;
};
/// "stream", "graph + others", "stream alone"
std::string name(const Setting& setting);

struct TimingOptions {
  double batch_us = 150;   ///< how long a batch of calls shall take
  int most_calls = 64;     ///< per batch
  int rounds = 20;         ///< batches of each contestant
  int least_rounds = 5;    ///< these are taken even where `cap_ms` is over
  double cap_ms = 30;      ///< wall-clock time for all contestants together
};

/// Time per call. Among others it is what the call adds to the time of their kernels, and may be less than nothing.
struct Timing {
  double median_us = 0;
  double spread_us = 0;  ///< half the interquartile range
  int batches = 0;
  /// The share of a batch's time in which the host enqueued it, in the median: near 1, calls are as slow as the host
  /// launches them. 0 where the device begins when everything is enqueued: in graphs, and without company.
  double host_share = 0;
};

/// The work around the calls that are timed.
struct Surroundings {
  std::function<void(Stream)> make_cold;   ///< drives the inputs out of the cache; before each batch, and waited for
  std::function<void(Stream)> other = {};  ///< the kernel that runs between calls; for Company::others
};

/// Times all contestants in rounds, so that a drifting clock hits all alike. Each round has an order of its own: what
/// runs before a batch, on the host too, decides a part of its time, and nobody is to follow the same contestant. In a
/// graph the batch is captured once and replayed, and the time begins when it has been launched; so it does where a
/// call has no company, since the host would be timed otherwise. Throws what a contestant throws.
std::vector<Timing> time_interleaved(Device& device, Stream stream, const Setting& setting,
                                     std::span<const Contestant> contestants, const Surroundings& surroundings,
                                     const TimingOptions& options);

}  // namespace hone::benchmarks
