// Occupancy from facts alone: how many blocks are resident on an SM, what limits them, and what that means for a grid.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <hone/device_facts.h>
#include <hone/kernel.h>

namespace hone {

/// The resources of an SM that resident blocks share.
enum class SmResource : std::uint8_t { threads, blocks, registers, smem };

inline constexpr std::array<std::string_view, 4> kSmResourceNames{"threads", "blocks", "registers", "shared memory"};
constexpr std::string_view name(SmResource resource) { return kSmResourceNames[static_cast<std::size_t>(resource)]; }

/// The number of blocks that each resource of an SM has room for.
struct OccupancyLimits {
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  std::array<int, 4> by{};  ///< indexed by SmResource; kUnlimited: blocks need nothing of it

  int operator[](SmResource resource) const { return by[static_cast<std::size_t>(resource)]; }

  /// The blocks that are resident at once; 0 when none fits.
  int resident_blocks() const { return *std::min_element(by.begin(), by.end()); }

  /// True if no resource has room for fewer blocks. Several may limit at once.
  bool is_limited_by(SmResource resource) const { return (*this)[resource] == resident_blocks(); }
};

/// A pure function. Where the GPU is present, Device::resident_blocks() asks the driver instead.
///
/// Resources are counted in the units in which the hardware hands them out. Formulas and granularities are those of
/// cuda_occupancy.h of CUDA 13.0 for compute capability 5.0 and newer (see also CUDA C++ Programming Guide, "Occupancy
/// Calculator"), with the largest shared-memory carveout and one barrier per block. Limits that are 0 in `facts`
/// (registers or shared memory per SM) do not limit.
OccupancyLimits occupancy_limits(const DeviceFacts& facts, const Resources& resources, int block_threads,
                                 std::size_t dynamic_smem_bytes);

/// occupancy_limits().resident_blocks()
int resident_blocks(const DeviceFacts& facts, const Resources& resources, int block_threads,
                    std::size_t dynamic_smem_bytes);

/// A block size, and the blocks of it that are resident on one SM.
struct PotentialBlock {
  int threads = 0;  ///< 0: no block of this kernel fits
  int resident_blocks = 0;
};

/// The block size that cudaOccupancyMaxPotentialBlockSize() takes: of the multiples of a warp, and the largest block,
/// the one with the most resident threads; the largest if several have them.
PotentialBlock max_potential_block(const DeviceFacts& facts, const Resources& resources,
                                   std::size_t dynamic_smem_bytes);

/// The blocks of a grid in waves: as many at once as are resident on all SMs.
struct Waves {
  std::int64_t slots = 0;        ///< blocks of a whole wave; 0: no block is resident
  std::int64_t whole = 0;        ///< waves that fill all slots
  std::int64_t last_blocks = 0;  ///< blocks of the wave behind those; 0: there is none

  std::int64_t count() const { return whole + (last_blocks > 0 ? 1 : 0); }

  /// The share of all waves' slots that stays idle because the last wave is not full: the tail effect, 0 … 1.
  double waste() const {
    if (last_blocks == 0) return 0;
    return static_cast<double>(slots - last_blocks) / static_cast<double>(slots * count());
  }
};

Waves waves_of(const DeviceFacts& facts, int resident_blocks, std::int64_t blocks);

/// Bytes per SM that must be outstanding to saturate memory, by Little's law: bandwidth × latency ÷ SMs. 0 where loads
/// do not wait, as on the host.
std::int64_t bytes_in_flight_needed(const DeviceFacts& facts);

}  // namespace hone
