// DeviceFacts: plain data about a device, as far as tuning needs it.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

/// Limits and sizes of one device. Constructible in a test; nothing here asks a driver.
///
/// Fields that a device does not have (the memory clock of a CPU) are 0 and mean "unknown".
struct DeviceFacts {
  std::string kind;          ///< "cuda" or "host": rows of different kinds are never mixed in the cache
  std::string name;          ///< as the driver or the operating system calls it: "NVIDIA H100 80GB HBM3"
  std::string architecture;  ///< what code is compiled for: "sm_90", "x86_64"
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
  int smem_bytes_reserved_per_block = 0;     ///< taken by the system from every resident block
  std::int64_t l2_bytes = 0;                 ///< last-level cache
  std::int64_t memory_bytes = 0;
  int sm_clock_khz = 0;                      ///< the highest that the driver lists
  std::int64_t max_grid_x = 0;               ///< blocks of one launch
  std::int64_t max_grid_y = 0;
  std::int64_t max_grid_z = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  bool has_dependent_launch = false;         ///< programmatic dependent launch: compute capability 9.0 and newer
  int max_cluster_blocks = 0;                ///< of a thread-block cluster; 0: there are no clusters

  bool operator==(const DeviceFacts&) const = default;
};

/// What a device and its host take at least, measured in this process. 0: not measured.
struct DeviceLimits {
  double enqueue_us = 0;        ///< the host's part of one launch in a stream
  double stream_launch_us = 0;  ///< an empty kernel among others in a stream, when the host is ahead of the device
  double graph_launch_us = 0;   ///< the same in a replayed graph
  double read_gbps = 0;         ///< memory that is read and not kept
};

/// Peak memory bandwidth that clock and bus width imply, in GB/s (10^9 bytes per second); 0 when unknown.
/// 2 transfers per clock (double data rate) × bus bytes: the formula of NVIDIA's deviceQuery sample.
double peak_bandwidth_gbps(const DeviceFacts& facts);

/// The facts that decide which kernel is fastest, as canonical text: one `key=value;` per field in a fixed order.
/// Two devices with the same text share winners; the driver is left out, since it may change under a winner, and so is
/// what follows from the compute capability.
std::string tuning_identity(const DeviceFacts& facts);

}  // namespace hone
