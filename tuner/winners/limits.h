// Limits: what a device allows at most, and what keeps a measured winner from being faster. Pure: rows in, figures out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <hone/device_facts.h>
#include <hone/problem.h>
#include <hone/sdk/occupancy.h>

#include "cache/records.h"

namespace hone::tuner {

/// The largest of some figures and the largest of the other winners', so that no winner is compared with itself.
struct Records {
  double first = 0, second = 0;
  std::int64_t winner = 0;  ///< the id of the one with the first

  void add(double figure, std::int64_t id);
  double without(std::int64_t id) const { return id == winner ? second : first; }
};

/// The ceilings of one device in one launch context. Where the model knows nothing, and where rows show that the device
/// does better than the model says, they are what was measured.
struct DeviceCeilings {
  DeviceFacts facts;
  LaunchContext context = LaunchContext::stream;
  double implied_gbps = 0;        ///< what memory clock and bus width imply; 0: not known
  double read_gbps = 0;           ///< what the best kernels reach; 0: nothing is known
  bool is_read_measured = false;  ///< read_gbps is the fastest winner of the rows
  double launch_us = 0;           ///< device time of an empty kernel
  double floor_us = 0;            ///< what no call takes less than: launch_us, or the pace at which the host enqueues
  std::int64_t bytes_in_flight_needed = 0;  ///< per SM, by Little's law; 0 where loads do not wait

  Records from_memory_gbps = {}, any_gbps = {};  ///< of the rows; from_memory_gbps of those that no cache holds
  Records calls_per_us = {};                     ///< of the rows in this launch context

  /// The same by the rows of all others: the fastest winner is no ceiling of its own.
  DeviceCeilings without(std::int64_t winner) const;
};

/// From the device's own rows among `winners`, of any problem.
DeviceCeilings device_ceilings(const cache::DeviceRecord& device, LaunchContext context,
                               const std::vector<cache::StoredWinner>& winners);

enum class Limit : std::uint8_t { memory, launch, latency, arithmetic };

/// "memory bandwidth", "launch", "latency", "arithmetic and issue".
std::string_view name(Limit limit);

/// Why a winner takes as long as it does, in parts that overlap on the device: estimates, not counters.
struct WinnerLimit {
  Limit limit = Limit::memory;
  double roofline_us = 0;   ///< launch and memory together, at least DeviceCeilings::floor_us; 0: not known
  double memory_us = 0;     ///< the bytes at DeviceCeilings::read_gbps; 0: not known
  std::int64_t tiles = 0;   ///< of the problem; 0: of a family that is not built in
  std::int64_t blocks = 0;  ///< of the launch; 0: not known
  Waves waves;              ///< of these blocks
};

/// The limit of a winner that has a time, with bytes_in_flight_per_sm of its trial (0: not known). `ceilings` should be
/// without() the winner in whose class it was measured.
WinnerLimit limit_of(const cache::StoredWinner& stored, std::int64_t bytes_in_flight_per_sm,
                     const DeviceCeilings& ceilings);

}  // namespace hone::tuner
