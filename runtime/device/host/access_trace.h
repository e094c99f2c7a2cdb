// AccessTrace: the accesses of one run to memory, and which of them nothing orders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/device/host/prelude/host_abi.h"

namespace hone {

/// One side of a race.
struct RacingAccess {
  hone_host::AccessKind kind{};
  hone_host::Index3 block{}, thread{};
  std::uint64_t code_address = 0;  ///< where it returns to, in its module
};

/// Two accesses of one place by different threads, at least one of which writes, that no barrier orders.
struct Race {
  /// In the order of the program where it is known, since the thread of one of them does both without a barrier; else
  /// as they came in this run.
  RacingAccess earlier, later;
  std::uintptr_t address = 0;
  std::ptrdiff_t smem_offset = -1;  ///< in the block's shared memory; -1: the place is elsewhere
};

/// Barriers of the block order everything before them, __syncwarp() orders the lanes of its mask, and the end of a
/// launch orders all. What fences may order, on both sides, counts as ordered: a trace names no pair that may be right.
/// Neither memory beyond the first kMostBytes that are touched is looked at, nor what comes after kMostAccesses.
///
/// For launches on one SM; used by its thread alone.
class AccessTrace {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 24, kMostAccesses = std::size_t{1} << 21;

  void begin_launch();
  void begin_block(hone_host::Index3 block, const unsigned char* smem, std::size_t smem_bytes);
  void end_block() { finish_write(); }

  // --- what lane number `lane` of the block does ---
  void access(unsigned lane, hone_host::Index3 thread, std::uintptr_t address, std::size_t bytes,
              hone_host::AccessKind kind, std::uint64_t code_address);
  void fence(unsigned lane, hone_host::FenceScope scope);

  // --- what lanes do together ---
  void barrier() { ++epoch_; }
  void sync_warp(unsigned first_lane, unsigned mask);

  /// In the order in which they were found, each pair of places in the code once.
  const std::vector<Race>& races() const { return races_; }

  /// Races whose two sides both change the place, and at least one of which has read it before: `x += 1` without an
  /// atomic function. On a GPU one of the changes may be lost, though here the results are right in every order. Unlike
  /// other races, of which some do no harm: values that nobody uses, or equal ones that several threads write.
  const std::vector<Race>& lost_updates() const { return lost_updates_; }

 private:
  /// Equal accesses, such as those of a loop, are one.
  struct Access {
    hone_host::Index3 thread{};
    std::uint32_t block = 0;   ///< a number that counts blocks
    std::uint32_t epoch = 0;   ///< barriers before it
    std::uint32_t clock = 0;   ///< of its lane in the warp
    std::uint32_t fences = 0;  ///< of all lanes, before it
    std::uint16_t lane = 0;
    hone_host::AccessKind kind{};
    std::uint64_t code_address = 0;

    bool writes() const { return kind != hone_host::AccessKind::read; }
    bool operator==(const Access& other) const;
  };
  using AccessIndex = std::uint32_t;  ///< in accesses_, which begins with none
  struct Cell {
    AccessIndex write = 0;
    std::array<AccessIndex, 2> reads{};  ///< of different lanes
    bool is_changed = false;             ///< by that write
    bool is_updated = false;             ///< by a lane that had read it since its last barrier
  };
  /// A write that is about to be made: only after it can be seen which bytes it changes.
  struct Write {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    AccessIndex index = 0;
    std::vector<std::byte> before;
    std::vector<AccessIndex> updates;  ///< for each byte, the change by another lane that this one may lose; 0: none
  };
  static constexpr std::size_t kPageBytes = 1024, kRecent = 16;
  using Page = std::array<Cell, kPageBytes>;

  AccessIndex index_of(const Access& access);
  Page* page_of(std::uintptr_t address);
  void begin_write(std::uintptr_t address, std::size_t bytes, AccessIndex index);
  void finish_write();
  void touch(Cell& cell, AccessIndex index, std::uintptr_t address);
  AccessIndex lost_update(const Cell& cell, AccessIndex write, bool is_update) const;
  bool has_read(const Cell& cell, const Access& now) const;
  bool are_ordered(const Access& earlier, const Access& later) const;
  void add_race(std::vector<Race>& races, AccessIndex first, AccessIndex second, std::uintptr_t address) const;
  bool does_before(const Access& other, AccessIndex index) const;
  RacingAccess racing(const Access& access) const;

  std::vector<Access> accesses_{Access{}};
  std::array<std::array<AccessIndex, kRecent>, hone_host::kMaxLanes> recent_{};
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_page_number_ = 0;
  Page* last_page_ = nullptr;

  std::vector<hone_host::Index3> blocks_;
  std::vector<std::uint32_t> block_fences_;  ///< when a block last made a device-wide fence, counted in fences_
  std::array<std::uint32_t, hone_host::kMaxLanes> lane_fences_{};
  std::uint32_t fences_ = 0, epoch_ = 0;
  std::array<std::array<std::uint32_t, 32>, hone_host::kMaxLanes> clocks_{};  ///< vector clocks of the lanes of a warp
  std::uintptr_t smem_ = 0;
  std::size_t smem_bytes_ = 0;
  Write write_;
  std::vector<Race> races_, lost_updates_;
};

}  // namespace hone
