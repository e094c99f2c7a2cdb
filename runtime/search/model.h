// The occupancy model: what a candidate is predicted to take, and why.
#pragma once

#include <algorithm>
#include <cstdint>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

namespace hone {

/// Costs that DeviceFacts do not tell. They order candidates; measurement decides.
struct ModelConstants {
  double enqueue_us;              ///< the host's part of a launch, which hides what the device does meanwhile
  double launch_us;               ///< the device's part of an empty kernel
  double extra_launch_us;         ///< each further kernel of one call
  double dependent_launch_us;     ///< an empty kernel that may overlap the end of the one ahead
  double extra_dependent_us;      ///< each further kernel that may
  double join_us;                 ///< ticket, fence and reload of a last block
  double cluster_us;              ///< the barriers of a cluster
  double partials_us;  ///< each round in which a block reads the partial results of as many as it has threads
  double block_thread_us;         ///< per thread of a block: starting it, and its part in combining them
  double memory_latency_us;       ///< of one load under load; 0: loads do not wait
  double thread_us;               ///< per thread and block: starting it and taking it through the block's barriers
  double bandwidth_gbps;          ///< what the best kernels reach
  double sm_bandwidth_gbps;       ///< most that one SM can draw when the others are idle
  double sm_instructions_per_ns;  ///< that an SM issues for all of its threads; 0: instructions cost nothing
  double cluster_bandwidth_gbps;  ///< likewise one cluster, whose SMs are neighbours; 0: there are none
  double block_share_bytes;  ///< 0: threads run together. Else they run one after the other, and each sweeps all of
                             ///< the block's share: beyond this size the lines that they have in common are lost
};

/// Constants for the device's kind and the launch context; bandwidth from the memory clock and bus width where those
/// are known.
ModelConstants model_constants(const DeviceFacts& facts, LaunchContext context = LaunchContext::stream);

struct Prediction {
  std::int64_t blocks = 0;                  ///< grid of the call
  std::int64_t bytes_in_flight_per_sm = 0;  ///< of the busiest SM
  double device_us = 0;                     ///< what the device takes
  double enqueue_us = 0;                    ///< what the host takes to enqueue it; 0 in a graph

  /// Times calls one after the other: the slower of the two sets the pace.
  double us() const { return std::max(device_us, enqueue_us); }
};

/// True if one comes before the other: by its time, and where the host sets that, by the device's part.
inline bool is_faster(const Prediction& a, const Prediction& b) {
  return a.us() != b.us() ? a.us() < b.us() : a.device_us < b.device_us;
}

/// Time of one call by Little's law and whole waves: blocks draw their bytes in flight ÷ latency, all together at most
/// the device's bandwidth; what is left after the last whole wave, or the last whole round of tiles, is drawn by fewer
/// blocks.
Prediction predict(const DeviceFacts& facts, const WorkShape& shape, std::int64_t bytes_moved, int resident_blocks,
                   const Geometry& geometry, LaunchContext context = LaunchContext::stream);

/// The same of a candidate of a problem, with what the source of its kernel has in flight.
Prediction predict(const DeviceFacts& facts, const Problem& problem, const Candidate& candidate, int resident_blocks);

/// No candidate can beat this: one launch, and the bytes of the problem at the bandwidth that the best kernels reach;
/// of warm inputs the launch alone, since they come from a cache whose bandwidth is not known. By what was measured of
/// this device, and else by the constants of the model; 0 where the device's bandwidth is a guess.
double roofline_us(const DeviceFacts& facts, const DeviceLimits& limits, const Problem& problem,
                   InputState inputs = InputState::cold);

/// Returns what enqueueing a launch takes the host where the calls of the problem may be so short that it sets their
/// pace: whatever else runs on the host would show in what is measured. 0 for longer calls, and in graphs.
double host_pace_us(const DeviceFacts& facts, const DeviceLimits& limits, const Problem& problem);

}  // namespace hone
