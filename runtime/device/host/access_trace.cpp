#include "runtime/device/host/access_trace.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hone {
namespace {

/// More than a report needs, and few enough that a wrong kernel costs no memory.
constexpr std::size_t kMostRaces = 16;

}  // namespace

bool AccessTrace::Access::operator==(const Access& other) const {
  const auto key = [](const Access& a) {
    return std::tie(a.block, a.epoch, a.clock, a.fences, a.lane, a.kind, a.code_address);
  };
  return key(*this) == key(other);
}

void AccessTrace::begin_launch() {
  accesses_.resize(1);
  pages_.clear();
  last_page_ = nullptr;
  blocks_.clear();
  block_fences_.clear();
  fences_ = 0;
}

void AccessTrace::begin_block(hone_host::Index3 block, const unsigned char* smem, std::size_t smem_bytes) {
  // Every block has shared memory of its own, though it is the same memory here.
  const auto address = reinterpret_cast<std::uintptr_t>(smem);
  for (std::uintptr_t page = address / kPageBytes; page * kPageBytes < address + smem_bytes; ++page) {
    const auto known = pages_.find(page);
    if (known == pages_.end()) continue;
    for (std::size_t i = 0; i < kPageBytes; ++i)
      if (page * kPageBytes + i - address < smem_bytes) (*known->second)[i] = {};
  }
  blocks_.push_back(block);
  block_fences_.push_back(0);
  lane_fences_ = {};
  recent_ = {};
  epoch_ = 0;
  for (std::size_t lane = 0; lane < clocks_.size(); ++lane) {
    clocks_[lane] = {};
    clocks_[lane][lane % 32] = 1;
  }
  smem_ = address;
  smem_bytes_ = smem_bytes;
}

void AccessTrace::fence(unsigned lane, hone_host::FenceScope scope) {
  lane_fences_[lane] = ++fences_;
  if (scope == hone_host::FenceScope::device) block_fences_.back() = fences_;
}

void AccessTrace::sync_warp(unsigned first_lane, unsigned mask) {
  std::array<std::uint32_t, 32> joined{};
  for (unsigned i = 0; i < 32; ++i)
    for (unsigned k = 0; k < 32 && (mask >> i & 1) != 0; ++k)
      joined[k] = std::max(joined[k], clocks_[first_lane + i][k]);
  for (unsigned i = 0; i < 32; ++i) {
    if ((mask >> i & 1) == 0) continue;
    clocks_[first_lane + i] = joined;
    ++clocks_[first_lane + i][i];
  }
}

void AccessTrace::access(unsigned lane, hone_host::Index3 thread, std::uintptr_t address, std::size_t bytes,
                         hone_host::AccessKind kind, std::uint64_t code_address) {
  const AccessIndex index = index_of({.thread = thread,
                                      .block = static_cast<std::uint32_t>(blocks_.size() - 1),
                                      .epoch = epoch_,
                                      .clock = clocks_[lane][lane % 32],
                                      .fences = fences_,
                                      .lane = static_cast<std::uint16_t>(lane),
                                      .kind = kind,
                                      .code_address = code_address});
  for (std::size_t i = 0; i < bytes; ++i)
    if (Page* const page = page_of(address + i)) touch((*page)[(address + i) % kPageBytes], index, address + i);
}

AccessTrace::AccessIndex AccessTrace::index_of(const Access& access) {
  AccessIndex& recent = recent_[access.lane][access.code_address % kRecent];
  if (recent == 0 || !(accesses_[recent] == access)) {
    recent = static_cast<AccessIndex>(accesses_.size());
    accesses_.push_back(access);
  }
  return recent;
}

AccessTrace::Page* AccessTrace::page_of(std::uintptr_t address) {
  const std::uintptr_t number = address / kPageBytes;
  if (last_page_ != nullptr && number == last_page_number_) return last_page_;
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr && pages_.size() * kPageBytes <= kMostBytes) page = std::make_unique<Page>();
  last_page_ = page.get();
  last_page_number_ = number;
  return last_page_;
}

void AccessTrace::touch(Cell& cell, AccessIndex index, std::uintptr_t address) {
  const Access& now = accesses_[index];
  const auto compare = [&](AccessIndex before) {
    if (before != 0 && before != index && !are_ordered(accesses_[before], now)) add_race(before, index, address);
  };
  compare(cell.write);
  if (!now.writes()) {
    const Access& last = accesses_[cell.reads[0]];
    if (cell.reads[0] != 0 && (last.lane != now.lane || last.block != now.block)) cell.reads[1] = cell.reads[0];
    cell.reads[0] = index;
    return;
  }
  for (const AccessIndex read : cell.reads) compare(read);
  cell.write = index;
}

bool AccessTrace::are_ordered(const Access& earlier, const Access& later) const {
  using hone_host::AccessKind;
  if (earlier.kind == AccessKind::atomic && later.kind == AccessKind::atomic) return true;
  if (earlier.block != later.block) {
    return block_fences_[earlier.block] > earlier.fences && block_fences_[later.block] > earlier.fences;
  }
  if (earlier.lane == later.lane || earlier.epoch != later.epoch) return true;
  if (earlier.lane / 32 == later.lane / 32 && clocks_[later.lane][earlier.lane % 32] >= earlier.clock) return true;
  return lane_fences_[earlier.lane] > earlier.fences && lane_fences_[later.lane] > earlier.fences;
}

RacingAccess AccessTrace::racing(const Access& access) const {
  return {access.kind, blocks_[access.block], access.thread, access.code_address};
}

/// True if the lane of access `index` did the same as `other` since its last barrier, before that access.
bool AccessTrace::does_before(const Access& other, AccessIndex index) const {
  const Access& last = accesses_[index];
  for (AccessIndex i = index; i-- > 1;) {
    const Access& each = accesses_[i];
    if (each.block != last.block || each.epoch != last.epoch) return false;
    if (each.lane == last.lane && each.code_address == other.code_address) return true;
  }
  return false;
}

void AccessTrace::add_race(AccessIndex first, AccessIndex second, std::uintptr_t address) {
  const std::uint64_t a = accesses_[first].code_address, b = accesses_[second].code_address;
  const bool is_known = std::ranges::any_of(races_, [&](const Race& known) {
    return std::minmax(known.earlier.code_address, known.later.code_address) == std::minmax(a, b);
  });
  if (is_known || races_.size() == kMostRaces) return;
  const bool is_one_block = accesses_[first].block == accesses_[second].block;
  if (is_one_block && does_before(accesses_[second], first)) std::swap(first, second);
  Race& race = races_.emplace_back(Race{racing(accesses_[first]), racing(accesses_[second])});
  race.address = address;
  if (address - smem_ < smem_bytes_) race.smem_offset = static_cast<std::ptrdiff_t>(address - smem_);
}

}  // namespace hone
