// DeviceFacts: what tuning needs to know of a device, as plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

/// Limits and sizes of one device. Plain data: a test can make them up, and nothing here asks a driver. A field that a
/// device does not have, such as the memory clock of a CPU, is 0.
struct DeviceFacts {
  std::string kind;          ///< "cuda" or "host"; the cache never mixes rows of different kinds
  std::string name;          ///< as the driver or the operating system calls it: "NVIDIA H100 80GB HBM3"
  std::string architecture;  ///< the target of compilation: "sm_90", "x86_64"
  std::string driver;        ///< driver version, "13.0"; for the host, its C library

  int compute_capability = 0;  ///< 10 × major + minor; 0 for the host
  int sm_count = 1;            ///< multiprocessors; on the host, worker threads
  int warp_threads = 32;
  int max_threads_per_block = 1024;
  int max_threads_per_sm = 2048;
  int max_blocks_per_sm = 32;
  int registers_per_sm = 65536;     ///< 32-bit registers; 0: not a limit on this device
  int registers_per_block = 65536;
  int smem_bytes_per_sm = 0;
  int smem_bytes_per_block = 49152;          ///< without opting in to more
  int smem_bytes_per_block_optin = 49152;    ///< with cudaFuncAttributeMaxDynamicSharedMemorySize
  int smem_bytes_reserved_per_block = 0;     ///< used by the system in every resident block
  std::int64_t l2_bytes = 0;                 ///< last-level cache
  std::int64_t memory_bytes = 0;
  int sm_clock_khz = 0;                      ///< the highest that the driver lists
  std::int64_t max_grid_x = 0;               ///< blocks of one launch
  std::int64_t max_grid_y = 0;
  std::int64_t max_grid_z = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  bool has_dependent_launch = false;         ///< programmatic dependent launch: compute capability 9.0 and newer
  int max_cluster_blocks = 0;                ///< blocks of a thread-block cluster; 0: no clusters

  bool operator==(const DeviceFacts&) const = default;
};

/// Lower bounds for the time of a call, measured on the device and its host. 0: not measured.
struct DeviceLimits {
  double enqueue_us = 0;        ///< host time of one launch in a stream: three quarters of the least that was seen
  double stream_launch_us = 0;  ///< device time of an empty kernel in a stream whose work is all enqueued already
  double graph_launch_us = 0;   ///< device time of an empty kernel in a replayed graph
  double read_gbps = 0;         ///< bandwidth of a plain read of device memory, 10^9 bytes per second

  bool operator==(const DeviceLimits&) const = default;
};

/// The peak memory bandwidth that memory clock and bus width imply, in GB/s (10^9 bytes per second); 0 if unknown.
/// The formula is that of NVIDIA's deviceQuery sample: 2 transfers per clock (double data rate) × bytes of the bus.
double peak_bandwidth_gbps(const DeviceFacts& facts);

/// The facts that decide which kernel is fastest, as canonical text: one `key=value;` per field in a fixed order. Two
/// devices with the same text share winners, and those whose memory clocks differ by at most a tenth do, too. The text
/// has neither the driver, which may change under a winner, nor what follows from the compute capability. It has the
/// name only if the memory bus is not known: one GPU has several marketing names, those of CPUs tell them apart.
std::string tuning_identity(const DeviceFacts& facts);

/// The inverse of tuning_identity(), as far as it goes; `facts` has what the text does not say. Fields that a damaged
/// text misspells keep what they have.
DeviceFacts facts_of_identity(std::string_view identity, DeviceFacts facts = {});

}  // namespace hone
