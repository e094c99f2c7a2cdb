#include "runtime/search/model.h"

#include <algorithm>
#include <cmath>

#include <hone/sdk/ceilings.h>
#include <hone/sdk/occupancy.h>

#include "runtime/families/counts.h"

namespace hone {
namespace {

// Fitted to the times of 5,800 candidates (sums and argmax of f32, f16 and i8, 2^10 to 2^28 elements, in streams and
// graphs; H100 80GB HBM3, CUDA 13.0, 2026-11): of those that are predicted to be the fastest, one in seven, the best is
// 0.06 % behind the best of all in the mean and 1.4 % at worst. In a stream the host takes 2.66 µs to enqueue a kernel,
// or more where its processor is slower; what the device does meanwhile is hidden. An empty kernel takes 0.79 µs in a
// replayed graph, 0.50 with dependent launches. Enqueued one by one ahead of the device, calls of one kernel take 0.40
// to 0.61 µs longer than in a graph, and of two 0.60 to 1.1 (2^18 to 2^23 elements). The best reductions reach 93 % of
// the bandwidth that clock and bus width imply. That of a cluster is what 16 blocks draw that have all of 2^18 floats
// in flight at once: 2.7 µs for the sum (H200, CUDA 13.0, 2026-11). An SM issues four instructions of 32 threads a
// cycle, at 1.7 GHz.
constexpr ModelConstants kCudaGraph{.enqueue_us = 0,
                                    .launch_us = 0.79,
                                    .extra_launch_us = 0.8,
                                    .dependent_launch_us = 0.50,
                                    .extra_dependent_us = 0.45,
                                    .join_us = 0.6,
                                    .cluster_us = 0.2,
                                    .partials_us = 0.14,
                                    .block_thread_us = 0.0003,
                                    .memory_latency_us = 0.55,
                                    .thread_us = 0,
                                    .bandwidth_gbps = 1000,
                                    .sm_bandwidth_gbps = 110,
                                    .sm_instructions_per_ns = 217,
                                    .cluster_bandwidth_gbps = 1000,
                                    .block_share_bytes = 0};
constexpr ModelConstants kCudaStream = [] {
  ModelConstants constants = kCudaGraph;
  constants.enqueue_us = 2.66;
  constants.launch_us += 0.48;
  constants.dependent_launch_us += 0.48;
  constants.extra_dependent_us += 0.33;
  return constants;
}();
constexpr double kReachableShare = 0.93;

/// How soon the smaller of two limits is all that counts (the p of a p-norm).
constexpr double kSharpness = 4;

/// Calls that take this many times as long as enqueueing one never wait for the host, even when it is busy.
constexpr double kClearOfEnqueueing = 4;

// Two cores of an x86-64 server (1 MiB of L2 each), g++ 12 -O3, 2026-11: threads are fibers, and a core waits for no
// load before it issues the next. The sum of 2^24 floats by 128 threads × 1, in M elements/s of both cores: 1090 in 2
// blocks, 1270 in 9, 3180 in 33, 3040 in 65; with -O2, where more were tried, 1020 in 8, 1940 in 17, 2055 in 33, 1930
// in 34 and in 65, but 1270 in 64, 1710 in 129, 970 in 513: 0.3 µs per thread and block.
constexpr ModelConstants kHost{.enqueue_us = 0,
                               .launch_us = 10,
                               .extra_launch_us = 10,
                               .dependent_launch_us = 10,
                               .extra_dependent_us = 10,
                               .join_us = 1,
                               .cluster_us = 0,
                               .partials_us = 0,
                               .block_thread_us = 0,
                               .memory_latency_us = 0,
                               .thread_us = 0.3,
                               .bandwidth_gbps = 0,
                               .sm_bandwidth_gbps = 7,
                               .sm_instructions_per_ns = 0,
                               .cluster_bandwidth_gbps = 0,
                               .block_share_bytes = 2 << 20};
/// A round of a cluster takes this multiple of memory's latency. Sums of i8 by 16 blocks of 128 threads with two loads
/// each: 4.8 µs in four rounds, 8.1 in eight (H200, CUDA 13.0, 2026-11).
constexpr double kClusterRound = 1.5;

/// A launch that overlaps the one ahead fills the slots that are free. Where its blocks per SM do not divide those that
/// are resident, some SMs get more than others, and all wait for them: with 2 blocks an SM where 3 are resident, sums
/// of 2^24 f32, 2^24 i8 and 2^26 i8 took 26.7, 9.71 and 27.9 µs, with 3 they took 24.7, 9.08 and 24.8 (H100,
/// CUDA 13.0, 2026-11-24).
constexpr double kUnevenSms = 1.08;

/// The SMs of a cluster are neighbours in a GPC, and the GPCs of a GPU may have unequal numbers of SMs that work, so
/// that clusters do not fit all of them. Softmax of 256 rows of 2^20 f32 by 16, 24 and 33 clusters of 16 took 930, 852
/// and 814 µs, as if 7 of the 8 that 132 SMs have room for were resident, 64 rows of 2^19 f16 by clusters of 4 64 where
/// 33 at once would take 54 (H100, CUDA 13.0, 2026-11-25 and 27). The driver of an H200 has room for 31 clusters of 4,
/// 15 of 8 and 7 of 16, where an SM has room for one block (2026-11-30).
constexpr int kLargeCluster = 4;
constexpr double kSmsOfClusters = 0.94;

/// Where blocks are independent, a persistent grid gives each SM the same share, and all wait for the slowest; one
/// block per tile goes to the SM that is free. Transposes of 64 to 512 µs took 1.4 to 2.5 % longer in the best
/// persistent grid, softmax of rows of 256 µs and more 1.7 to 2.6 % (H100, CUDA 13.0, 2026-11-25).
constexpr double kEqualShares = 1.02;

/// L2 has the part kReread of what is read again while it holds little else than what was read in between, and nothing
/// once that is nearly all of it, in shares of its size. 64 rows of 2^20 f16 take RMS norms in a pipeline of 264, 396,
/// 528 and 792 blocks, which keep 10, 14, 18 and 26 MiB, 109, 117, 130 and 134 µs, and a copy 92. Fitted to 517
/// candidates of pipelines (H100, CUDA 13.0, 2026-11-27).
constexpr double kReread = 0.55, kRereadWithin = 0.2, kNotRereadBeyond = 0.9;

/// kReread of rows that are held in part: what is not read again is evicted first (fitted to 5 problems of held_rows).
constexpr double kHeldReread = 0.75;

/// A warp for each of the four schedulers of an SM.
constexpr double kThreadsOfSchedulers = 128;

/// How much slower each doubling of a block's share beyond block_share_bytes makes it.
constexpr double kLostPerDoubling = 0.35;

/// The memory latencies of a round: of a grid, or in the mean over the rounds of a cluster. Behind the last row of a
/// cluster no load waits for its blocks: the softmax of one row of 2^16 f16 takes a cluster of 16 blocks 3.5 µs, two
/// launches of a grid 4.7 (H100, CUDA 13.0, 2026-11-26).
double mean_round_latencies(const WorkShape& shape, std::int64_t rounds) {
  if (shape.cluster_blocks == 1)
    return rounds == 1 && shape.lone_round_latencies > 0 ? shape.lone_round_latencies : shape.round_latencies;
  const auto count = static_cast<double>(rounds);
  return std::max(kClusterRound, (1 + (count - 1) * shape.round_latencies) / count);
}

/// A row ÷ what blocks hold of rows.
double row_share(const WorkShape& shape, std::int64_t blocks) {
  return static_cast<double>(shape.reread_distance_bytes) /
         static_cast<double>(std::max<std::int64_t>(1, blocks * shape.held_bytes_per_block));
}

/// The part of rows that blocks do not hold.
double rest_of_rows(const WorkShape& shape, std::int64_t blocks) {
  const double share = row_share(shape, blocks);
  if (share <= 1) return 0;
  return 1 - (1 - static_cast<double>(shape.bytes_in_flight_per_block) /
                      static_cast<double>(shape.held_bytes_per_block)) / share;
}

/// DRAM traffic ÷ the bytes that are moved, with what blocks hold and what L2 serves of a second reading left out.
double traffic_of(const DeviceFacts& facts, const WorkShape& shape, std::int64_t blocks) {
  const bool is_held = shape.held_bytes_per_block > 0;
  const double rest = is_held ? rest_of_rows(shape, blocks) : 1, reread = shape.reread_traffic * rest;
  const double traffic = shape.traffic - (shape.reread_traffic - reread);
  if (reread == 0 || facts.l2_bytes == 0) return traffic;
  // What was read last is read again first: half of the rest lies between, in the mean.
  const double kept = static_cast<double>(shape.reread_distance_bytes) * (is_held ? rest / 2 : 1) +
                      static_cast<double>(shape.reread_distance_tiles * blocks * shape.bytes_in_flight_per_block);
  const double share_of_l2 = kept / static_cast<double>(facts.l2_bytes);
  const double hits = std::clamp((kNotRereadBeyond - share_of_l2) / (kNotRereadBeyond - kRereadWithin), 0.0, 1.0);
  return traffic - reread * (is_held ? kHeldReread : kReread) * hits;
}

/// The memory latencies of held rows in which blocks wait for each other with little in flight: few where they hold as
/// many bytes of the next row. Softmax of 16 x 3000016, 10 x 6000000 and 6 x 7000001 f32 takes 18, 50 and 37 µs more
/// than a copy, of 8 x 9000001, which are held in part, 60 (H100, CUDA 13.0, 2026-11-27).
double held_row_latencies(const WorkShape& shape, std::int64_t blocks) {
  constexpr double kLatencies = 7.5, kWithin = 0.4, kMostAt = 0.8;
  if (shape.held_rows == 0) return 0;
  const double share = (row_share(shape, blocks) - kWithin) / (kMostAt - kWithin);
  return kLatencies * static_cast<double>(shape.held_rows) * std::clamp(share, 0.0, 1.0);
}

/// Returns what `blocks` blocks draw together in GB/s: little less than the least of what memory, the SMs that they are
/// on, the bytes that they have in flight, and the pace of tiles of `tile_bytes` allow.
double rate_gbps(const DeviceFacts& facts, const ModelConstants& constants, const WorkShape& shape,
                 std::int64_t blocks, std::int64_t rounds, double tile_bytes) {
  const double latencies = mean_round_latencies(shape, rounds);
  const auto busy_sms = static_cast<double>(std::min<std::int64_t>(blocks, facts.sm_count));
  double most = std::min(constants.bandwidth_gbps, constants.sm_bandwidth_gbps * busy_sms);
  if (shape.cluster_blocks > 1 && constants.cluster_bandwidth_gbps > 0)
    most =
        std::min(most, constants.cluster_bandwidth_gbps * static_cast<double>(divide_up(blocks, shape.cluster_blocks)));
  if (shape.cluster_sm_gbps > 0)
    most = 1 / std::hypot(1 / most, 1 / (shape.cluster_sm_gbps * static_cast<double>(blocks)));
  if (constants.memory_latency_us == 0) return most;
  // A block of a cluster is alone on its SM: nothing is in flight while it takes in one round and asks for the next.
  const double in_flight_gbps = static_cast<double>(blocks) * static_cast<double>(shape.bytes_in_flight_per_block) /
                                (constants.memory_latency_us * latencies) * 1e-3;
  double sum = std::pow(most, -kSharpness) + std::pow(in_flight_gbps, -kSharpness);
  if (shape.instructions_per_byte > 0 && constants.sm_instructions_per_ns > 0)
    sum += std::pow(busy_sms * constants.sm_instructions_per_ns / shape.instructions_per_byte, -kSharpness);
  if (shape.latencies_between_tiles > 0)
    sum += std::pow(tile_bytes / (constants.memory_latency_us * shape.latencies_between_tiles) * 1e-3, -kSharpness);
  if (shape.thread_gbps > 0)
    sum += std::pow(static_cast<double>(blocks * shape.block_threads) * shape.thread_gbps, -kSharpness);
  return std::pow(sum, -1 / kSharpness);
}

/// The large clusters that have SMs to themselves; 0: clusters are small, or there are none.
std::int64_t neighbours_of(const DeviceFacts& facts, const WorkShape& shape) {
  if (shape.cluster_blocks < kLargeCluster) return 0;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kSmsOfClusters * static_cast<double>(facts.sm_count)) / shape.cluster_blocks);
}

/// The blocks that all SMs have room for.
std::int64_t slots_of(const DeviceFacts& facts, const WorkShape& shape, int resident_blocks) {
  const std::int64_t neighbours = neighbours_of(facts, shape) * shape.cluster_blocks;
  return std::int64_t{resident_blocks} * (neighbours > 0 ? neighbours : facts.sm_count);
}

/// From the first byte to the last: whole waves of blocks, and what is left over at its own, lower rate. Clusters that
/// share their SMs with others are such a rest, too, as the memory's time of those SMs is shared: 7 and 8 rows of 2^20
/// f16 take RMS norms 13.3 and 18.4 µs by clusters of 16 with SMs to themselves, 14.4 and 18.1 where two fit, and 31
/// rows by 8, 16 and 31 clusters 60, 49.5 and 51 (H100, CUDA 13.0, 2026-11-27).
double working_us(const DeviceFacts& facts, const ModelConstants& constants, const WorkShape& shape,
                  std::int64_t bytes_moved, std::int64_t tiles, std::int64_t blocks, std::int64_t slots) {
  const double bytes_per_tile =
      traffic_of(facts, shape, blocks) * static_cast<double>(bytes_moved) / static_cast<double>(tiles);
  const std::int64_t rounds = divide_up(tiles, std::min(blocks, slots));
  const auto us = [&](std::int64_t at_once, double tiles_of_them) {
    if (tiles_of_them <= 0) return 0.0;
    double gbps = rate_gbps(facts, constants, shape, at_once, rounds, bytes_per_tile);
    const double share = static_cast<double>(bytes_moved) / static_cast<double>(blocks);
    if (constants.block_share_bytes > 0 && share > constants.block_share_bytes)
      gbps /= 1 + kLostPerDoubling * std::log2(share / constants.block_share_bytes);
    return tiles_of_them * bytes_per_tile / (gbps * 1e3);
  };
  const std::int64_t neighbours = neighbours_of(facts, shape) * shape.cluster_blocks;
  const std::int64_t second = neighbours > 0 && blocks > neighbours ? blocks % neighbours : 0;
  if (blocks <= slots && second > 0) {
    const double tiles_per_block = static_cast<double>(tiles) / static_cast<double>(blocks);
    return us(blocks - second, static_cast<double>(blocks - second) * tiles_per_block) +
           us(second, static_cast<double>(second) * tiles_per_block);
  }
  if (blocks <= slots) {
    const std::int64_t left_over = tiles % blocks;
    return us(blocks, static_cast<double>(tiles - left_over)) + us(left_over, static_cast<double>(left_over));
  }
  // The last tile of a block takes a whole round, which counts where a round is long.
  const double tiles_per_block = shape.round_latencies > 1 ? static_cast<double>(divide_up(tiles, blocks))
                                                           : static_cast<double>(tiles) / static_cast<double>(blocks);
  const std::int64_t left_over = blocks % slots;
  return us(slots, static_cast<double>(blocks - left_over) * tiles_per_block) +
         us(left_over, static_cast<double>(left_over) * tiles_per_block);
}

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
  const std::int64_t tiles = std::max<std::int64_t>(shape.tiles, 1);
  const std::int64_t blocks = std::clamp<std::int64_t>(tiles, 1, geometry.max_blocks);
  const std::int64_t slots = slots_of(facts, shape, resident_blocks);
  const std::int64_t at_once_on_sm = divide_up(std::min(blocks, slots), facts.sm_count);
  const std::int64_t in_flight = at_once_on_sm * shape.bytes_in_flight_per_block;

  const bool overlaps = shape.dependent_launch && facts.has_dependent_launch;
  const double first_us = overlaps ? constants.dependent_launch_us : constants.launch_us;
  double us = first_us + (overlaps ? constants.extra_dependent_us : constants.extra_launch_us) * (shape.launches - 1);
  us += constants.memory_latency_us + constants.block_thread_us * shape.block_threads;
  us += constants.thread_us * shape.block_threads * static_cast<double>(divide_up(blocks, facts.sm_count));
  const std::int64_t blocks_per_sm = divide_up(blocks, facts.sm_count);
  const bool is_uneven = overlaps && blocks_per_sm < resident_blocks && resident_blocks % blocks_per_sm != 0;
  const bool has_equal_shares =
      shape.independent_blocks && !shape.loads_ahead && blocks < tiles && constants.memory_latency_us > 0;
  us += working_us(facts, constants, shape, bytes_moved, tiles, blocks, slots) * (is_uneven ? kUnevenSms : 1) *
        (has_equal_shares ? kEqualShares : 1);
  // Nothing is in flight while the last round is combined. Each of an SM's schedulers issues for its own warps.
  if (constants.sm_instructions_per_ns > 0) {
    const auto threads = static_cast<double>(at_once_on_sm * shape.threads_that_load());
    const double schedulers = std::min(1.0, threads / kThreadsOfSchedulers);
    us += static_cast<double>(in_flight) * shape.instructions_per_byte /
          (constants.sm_instructions_per_ns * 1e3 * schedulers);
  }
  const std::int64_t fills =
      shape.cluster_blocks > 1 ? divide_up(tiles, std::min(blocks, slots)) : divide_up(blocks, slots);
  us += constants.memory_latency_us * shape.pipeline_fill_latencies * static_cast<double>(fills);
  us += constants.memory_latency_us * held_row_latencies(shape, blocks);
  us = std::max(us, first_us + constants.memory_latency_us * shape.critical_path_loads);
  if (shape.uses_last_block_ticket) us += constants.join_us;
  if (shape.cluster_blocks > 1) us += constants.cluster_us;
  else if (blocks > 1 && (shape.uses_last_block_ticket || shape.launches > 1))
    us += std::max(constants.partials_us, constants.memory_latency_us * shape.combining_latencies) *
          static_cast<double>(
              divide_up(blocks, shape.combining_threads > 0 ? shape.combining_threads : shape.block_threads));
  return {.blocks = blocks,
          .bytes_in_flight_per_sm = in_flight,
          .device_us = us,
          .enqueue_us = constants.enqueue_us * shape.launches};
}

Prediction predict(const DeviceFacts& facts, const Problem& problem, const Candidate& candidate, int resident_blocks) {
  return predict(facts, problem.family->shape(problem, candidate.policy), problem.family->bytes_moved(problem),
                 resident_blocks, candidate.geometry, problem.launch_context);
}

double roofline_us(const DeviceFacts& facts, const DeviceLimits& limits, const Problem& problem, InputState inputs) {
  const bool is_in_graph = problem.launch_context == LaunchContext::graph;
  const ModelConstants constants = model_constants(facts, problem.launch_context);
  double launch_us = std::min(constants.launch_us, constants.dependent_launch_us);
  double enqueue_us = constants.enqueue_us, gbps = peak_bandwidth_gbps(facts) > 0 ? constants.bandwidth_gbps : 0;
  if (limits.enqueue_us > 0) {
    launch_us = is_in_graph ? limits.graph_launch_us : limits.stream_launch_us;
    enqueue_us = is_in_graph ? 0 : limits.enqueue_us;
  }
  if (limits.read_gbps > 0) gbps = limits.read_gbps;
  if (gbps == 0) return 0;
  const std::int64_t from_memory = inputs == InputState::warm ? 0 : problem.family->bytes_moved(problem);
  return std::max(launch_us + static_cast<double>(from_memory) / (gbps * 1e3), enqueue_us);
}

double host_pace_us(const DeviceFacts& facts, const DeviceLimits& limits, const Problem& problem) {
  if (problem.launch_context != LaunchContext::stream) return 0;
  const double enqueue_us =
      limits.enqueue_us > 0 ? limits.enqueue_us : model_constants(facts, problem.launch_context).enqueue_us;
  const double least_us = roofline_us(facts, limits, problem);
  return least_us > 0 && least_us < kClearOfEnqueueing * enqueue_us ? enqueue_us : 0;
}

Ceilings model_ceilings(const DeviceFacts& facts, LaunchContext context) {
  const ModelConstants constants = model_constants(facts, context);
  const double launch_us = facts.has_dependent_launch ? std::min(constants.launch_us, constants.dependent_launch_us)
                                                      : constants.launch_us;
  return {.gbps = peak_bandwidth_gbps(facts) > 0 ? constants.bandwidth_gbps : 0,
          .launch_us = launch_us,
          .enqueue_us = constants.enqueue_us};
}

std::int64_t bytes_in_flight_needed(const DeviceFacts& facts) {
  const ModelConstants constants = model_constants(facts);
  return static_cast<std::int64_t>(constants.bandwidth_gbps * 1e3 * constants.memory_latency_us / facts.sm_count);
}

}  // namespace hone
