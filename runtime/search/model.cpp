#include "runtime/search/model.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// H100 80GB HBM3, CUDA 13.0, 2026-11: an empty kernel takes 2.66 µs in a stream, 0.79 in a replayed graph and 0.50
// there with dependent launches; a second kernel 1.5 to 1.9 µs more in a stream, 0.6 in a graph and 0.3 with dependent
// launches. (In a stream the host's enqueueing sets the pace, which dependent launches do not change.) The best
// reductions reach 93 % of the bandwidth that clock and bus width imply, and the same bytes in flight saturate them as
// a latency of about 0.7 µs would.
constexpr ModelConstants kCudaStream{.launch_us = 2.66,
                                     .extra_launch_us = 1.7,
                                     .dependent_launch_us = 2.66,
                                     .extra_dependent_us = 1.4,
                                     .join_us = 1.0,
                                     .memory_latency_us = 0.7,
                                     .thread_us = 0,
                                     .bandwidth_gbps = 1000,
                                     .sm_bandwidth_gbps = 100,
                                     .block_share_bytes = 0};
constexpr ModelConstants kCudaGraph{.launch_us = 0.79,
                                    .extra_launch_us = 0.6,
                                    .dependent_launch_us = 0.50,
                                    .extra_dependent_us = 0.3,
                                    .join_us = 1.0,
                                    .memory_latency_us = 0.7,
                                    .thread_us = 0,
                                    .bandwidth_gbps = 1000,
                                    .sm_bandwidth_gbps = 100,
                                    .block_share_bytes = 0};
constexpr double kReachableShare = 0.93;

// Two cores of an x86-64 server (1 MiB of L2 each), g++ 12 -O3, 2026-11: threads are fibers, and a core waits for no
// load before it issues the next. The sum of 2^24 floats by 128 threads × 1, in M elements/s of both cores: 1090 in 2
// blocks, 1270 in 9, 3180 in 33, 3040 in 65; with -O2, where more were tried, 1020 in 8, 1940 in 17, 2055 in 33, 1930 in
// 34 and in 65, but 1270 in 64, 1710 in 129, 970 in 513: 0.3 µs per thread and block.
constexpr ModelConstants kHost{.launch_us = 10,
                               .extra_launch_us = 10,
                               .dependent_launch_us = 10,
                               .extra_dependent_us = 10,
                               .join_us = 1,
                               .memory_latency_us = 0,
                               .thread_us = 0.3,
                               .bandwidth_gbps = 0,
                               .sm_bandwidth_gbps = 7,
                               .block_share_bytes = 2 << 20};
/// How much slower each doubling of a block's share beyond block_share_bytes makes it.
constexpr double kLostPerDoubling = 0.35;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

ModelConstants model_constants(const DeviceFacts& facts, LaunchContext context) {
  ModelConstants constants = facts.kind != "cuda"               ? kHost
                             : context == LaunchContext::graph ? kCudaGraph
                                                               : kCudaStream;
  const double peak = peak_bandwidth_gbps(facts);
  if (peak > 0) constants.bandwidth_gbps = kReachableShare * peak;
  if (constants.bandwidth_gbps == 0) constants.bandwidth_gbps = constants.sm_bandwidth_gbps * facts.sm_count;
  return constants;
}

Prediction predict(const DeviceFacts& facts, const WorkShape& shape, std::int64_t bytes_moved, int resident_blocks,
                   const Geometry& geometry, LaunchContext context) {
  const ModelConstants constants = model_constants(facts, context);
  const std::int64_t blocks = std::clamp<std::int64_t>(shape.tiles, 1, geometry.max_blocks);
  const std::int64_t slots = std::int64_t{resident_blocks} * facts.sm_count;
  const std::int64_t blocks_at_once = std::min(blocks, slots);
  const std::int64_t busy_sms = std::min<std::int64_t>(blocks, facts.sm_count);
  const std::int64_t in_flight = divide_up(blocks_at_once, facts.sm_count) * shape.bytes_in_flight_per_block;

  // Every wave takes as many rounds as its longest block has tiles; slots without a tile then idle.
  const std::int64_t waves = divide_up(blocks, slots);
  const std::int64_t rounds = waves * divide_up(shape.tiles, blocks);
  const double bytes = static_cast<double>(bytes_moved) * static_cast<double>(rounds * blocks_at_once) /
                       static_cast<double>(std::max<std::int64_t>(shape.tiles, 1));

  double gbps = std::min(constants.bandwidth_gbps, constants.sm_bandwidth_gbps * static_cast<double>(busy_sms));
  if (constants.memory_latency_us > 0)
    gbps = std::min(gbps, static_cast<double>(blocks_at_once * shape.bytes_in_flight_per_block) /
                              constants.memory_latency_us * 1e-3);

  const double share = static_cast<double>(bytes_moved) / static_cast<double>(blocks);
  if (constants.block_share_bytes > 0 && share > constants.block_share_bytes)
    gbps /= 1 + kLostPerDoubling * std::log2(share / constants.block_share_bytes);

  const bool overlaps = shape.dependent_launch && facts.has_dependent_launch;
  const double first_us = overlaps ? constants.dependent_launch_us : constants.launch_us;
  const double further_us = overlaps ? constants.extra_dependent_us : constants.extra_launch_us;
  double us = first_us + further_us * (shape.launches - 1) + constants.memory_latency_us + bytes / (gbps * 1e3);
  us += constants.thread_us * shape.block_threads * static_cast<double>(divide_up(blocks, facts.sm_count));
  us = std::max(us, first_us + constants.memory_latency_us * shape.serial_loads);
  if (shape.joins_blocks) us += constants.join_us;
  if (blocks > 1)  // someone reads all partial results
    us += constants.memory_latency_us * static_cast<double>(divide_up(blocks, shape.block_threads));
  return {.blocks = blocks, .bytes_in_flight_per_sm = in_flight, .us = us};
}

double roofline_us(const DeviceFacts& facts, const Problem& problem) {
  if (peak_bandwidth_gbps(facts) == 0) return 0;
  const ModelConstants constants = model_constants(facts, problem.launch_context);
  return std::min(constants.launch_us, constants.dependent_launch_us) +
         static_cast<double>(problem.family->bytes_moved(problem)) / (constants.bandwidth_gbps * 1e3);
}

std::int64_t bytes_in_flight_needed(const DeviceFacts& facts) {
  const ModelConstants constants = model_constants(facts);
  return static_cast<std::int64_t>(constants.bandwidth_gbps * 1e3 * constants.memory_latency_us / facts.sm_count);
}

}  // namespace hone
