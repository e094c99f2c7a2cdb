#include "runtime/device/host/late_copies.h"

#include <algorithm>
#include <cstring>

namespace hone {
namespace {

/// In turns of each lane. One copy of kLateOneOf is a late one.
constexpr std::uint64_t kMostUsualRounds = 4, kLateOneOf = 16, kLeastLateRounds = 16, kMostLateRounds = 128;

void land(const hone_host::AsyncCopy& copy) {
  std::memcpy(copy.to, copy.from, copy.bytes);
  if (copy.landed != nullptr) __atomic_fetch_add(copy.landed, 1ull, __ATOMIC_RELEASE);
}

}  // namespace

void LateCopies::begin_block(std::uint64_t seed, hone_host::Index3 block, std::size_t lanes) {
  seed_ = seed;
  block_ = block;
  lanes_ = lanes;
  now_ = 0;
  next_due_ = kNever;
  has_started_ = false;
  counted_.clear();
}

void LateCopies::start_first() {
  std::seed_seq seed{static_cast<unsigned>(seed_), static_cast<unsigned>(seed_ >> 32), block_.x, block_.y, block_.z};
  random_.seed(seed);
  groups_.resize(lanes_);
  for (Groups& groups : groups_) {
    groups.open = 0;
    groups.copies.clear();
  }
  has_started_ = true;
}

std::uint64_t LateCopies::below(std::uint64_t bound) { return random_() % bound; }

std::uint64_t LateCopies::turns_until_landing() {
  if (below(kLateOneOf) == 0)
    return (kLeastLateRounds + below(kMostLateRounds - kLeastLateRounds)) * lanes_;
  return below(2) == 0 ? 0 : below(kMostUsualRounds * lanes_);
}

void LateCopies::start(std::size_t lane, const hone_host::AsyncCopy& copy) {
  if (!has_started_) start_first();
  if (copy.landed == nullptr) {
    if (below(2) == 0) land(copy);
    else groups_[lane].copies.push_back({copy, groups_[lane].open});
    return;
  }
  const std::uint64_t turns = turns_until_landing();
  if (turns == 0) {
    land(copy);
    return;
  }
  counted_.push_back({{copy, lane}, now_ + turns});
  next_due_ = std::min(next_due_, now_ + turns);
}

void LateCopies::wait_for_groups(std::size_t lane, unsigned left) {
  if (!has_started_) return;
  Groups& groups = groups_[lane];
  const auto in_later_group = [&](const Grouped& one) { return one.group + left >= groups.open; };
  const auto end = std::find_if(groups.copies.begin(), groups.copies.end(), in_later_group);
  for (auto one = groups.copies.begin(); one != end; ++one) land(one->copy);
  groups.copies.erase(groups.copies.begin(), end);
}

void LateCopies::land_due() {
  next_due_ = kNever;
  std::erase_if(counted_, [this](const Counted& one) {
    if (one.due <= now_) {
      land(one.in_flight.copy);
      return true;
    }
    next_due_ = std::min(next_due_, one.due);
    return false;
  });
}

std::size_t LateCopies::count() const {
  if (!has_started_) return 0;
  std::size_t count = counted_.size();
  for (const Groups& groups : groups_) count += groups.copies.size();
  return count;
}

LateCopies::InFlight LateCopies::any() const {
  if (!counted_.empty()) return counted_.front().in_flight;
  const auto found = std::find_if(groups_.begin(), groups_.end(), [](const Groups& g) { return !g.copies.empty(); });
  return {found->copies.front().copy, static_cast<std::size_t>(found - groups_.begin())};
}

}  // namespace hone
