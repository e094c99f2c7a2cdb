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

/// The bytes are those before the write: this is called just before it.
void AccessTrace::begin_write(std::uintptr_t address, std::size_t bytes, AccessIndex index) {
  const auto* const at = reinterpret_cast<const std::byte*>(address);
  write_.before.assign(at, at + bytes);  // the fault of a wild access comes here, while there is no write to finish
  write_.updates.assign(bytes, 0);
  write_.address = address;
  write_.bytes = bytes;
  write_.index = index;
}

void AccessTrace::finish_write() {
  const auto* const now = reinterpret_cast<const std::byte*>(write_.address);
  for (std::size_t i = 0; i < write_.bytes; ++i) {
    if (now[i] == write_.before[i]) continue;
    const std::uintptr_t address = write_.address + i;
    if (Page* const page = page_of(address)) (*page)[address % kPageBytes].is_changed = true;
    if (write_.updates[i] != 0) add_race(lost_updates_, write_.updates[i], write_.index, address);
  }
  write_.bytes = 0;
}

void AccessTrace::access(unsigned lane, hone_host::Index3 thread, std::uintptr_t address, std::size_t bytes,
                         hone_host::AccessKind kind, std::uint64_t code_address) {
  finish_write();
  if (accesses_.size() >= kMostAccesses) return;
  const AccessIndex index = index_of({.thread = thread,
                                      .block = static_cast<std::uint32_t>(blocks_.size() - 1),
                                      .epoch = epoch_,
                                      .clock = clocks_[lane][lane % 32],
                                      .fences = fences_,
                                      .lane = static_cast<std::uint16_t>(lane),
                                      .kind = kind,
                                      .code_address = code_address});
  if (accesses_[index].writes()) begin_write(address, bytes, index);
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
    if (before != 0 && before != index && !are_ordered(accesses_[before], now))
      add_race(races_, before, index, address);
  };
  compare(cell.write);
  if (!now.writes()) {
    const Access& last = accesses_[cell.reads[0]];
    if (cell.reads[0] != 0 && (last.lane != now.lane || last.block != now.block)) cell.reads[1] = cell.reads[0];
    cell.reads[0] = index;
    return;
  }
  for (const AccessIndex read : cell.reads) compare(read);
  const bool is_update = has_read(cell, now);
  write_.updates[address - write_.address] = lost_update(cell, index, is_update);
  cell.write = index;
  cell.is_changed = false;
  cell.is_updated = is_update;
}

/// True if the lane of `now` has read the place since a barrier or fence last ordered it after others.
bool AccessTrace::has_read(const Cell& cell, const Access& now) const {
  return std::ranges::any_of(cell.reads, [&](AccessIndex index) {
    const Access& read = accesses_[index];
    return index != 0 && read.lane == now.lane && read.block == now.block && read.epoch == now.epoch &&
           read.clock == now.clock;
  });
}

/// The last write of a place, if it changed the place and a change by `write` may undo it.
AccessTrace::AccessIndex AccessTrace::lost_update(const Cell& cell, AccessIndex write, bool is_update) const {
  if (cell.write == 0 || !cell.is_changed || !(cell.is_updated || is_update)) return 0;
  return are_ordered(accesses_[cell.write], accesses_[write]) ? 0 : cell.write;
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

void AccessTrace::add_race(std::vector<Race>& races, AccessIndex first, AccessIndex second,
                           std::uintptr_t address) const {
  const std::uint64_t a = accesses_[first].code_address, b = accesses_[second].code_address;
  const bool is_known = std::ranges::any_of(races, [&](const Race& known) {
    return std::minmax(known.earlier.code_address, known.later.code_address) == std::minmax(a, b);
  });
  if (is_known || races.size() == kMostRaces) return;
  const bool is_one_block = accesses_[first].block == accesses_[second].block;
  if (is_one_block && does_before(accesses_[second], first)) std::swap(first, second);
  Race& race = races.emplace_back(Race{racing(accesses_[first]), racing(accesses_[second])});
  race.address = address;
  if (address - smem_ < smem_bytes_) race.smem_offset = static_cast<std::ptrdiff_t>(address - smem_);
}

}  // namespace hone
