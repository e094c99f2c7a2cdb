// BlockQueue: hands the blocks of one launch to the SMs.
#pragma once

#include <atomic>
#include <cstdint>
#include <numeric>

#include "runtime/device/host/fiber_annotations.h"
#include "runtime/device/host/host_options.h"

namespace hone {

/// Which block runs as the i-th of a launch: a bijection that needs no table.
class BlockOrder {
 public:
  BlockOrder(const HostOrder& order, std::uint64_t blocks)
      : blocks_(blocks), reverse_(order.kind == HostOrder::Kind::reverse) {
    if (order.kind != HostOrder::Kind::random) return;
    step_ = 1 + order.seed * 0x9e3779b97f4a7c15u % kMaxStep;
    while (std::gcd(step_, blocks) != 1) ++step_;
    first_ = order.seed % blocks;
  }
  std::uint64_t operator()(std::uint64_t i) const {
    return reverse_ ? blocks_ - 1 - i : (i * step_ + first_) % blocks_;
  }

 private:
  static constexpr std::uint64_t kMaxStep = 1 << 20;  ///< the product stays exact for every launch that ever ends

  std::uint64_t blocks_;
  std::uint64_t step_ = 1;
  std::uint64_t first_ = 0;
  bool reverse_;
};

/// An SM that becomes free takes the next block. Under ThreadSanitizer the i-th block belongs to SM i mod `sms`
/// instead, so that neighbouring blocks are always seen as concurrent. All operations are relaxed: taking a block must
/// not order it after blocks that other SMs have finished, which would hide a missing fence.
class BlockQueue {
 public:
  BlockQueue(std::uint64_t blocks, std::uint64_t sms) : blocks_(blocks), sms_(sms) {}

  /// The first position for an SM; each calls it once. Positions from size() on mean: none.
  std::uint64_t first() { return next_.fetch_add(1, std::memory_order_relaxed); }

  /// The position after `taken`, for the SM that took it.
  std::uint64_t after(std::uint64_t taken) {
    if (stopped_.load(std::memory_order_relaxed)) return blocks_;
    return sanitizer::kThread ? taken + sms_ : first();
  }

  /// Blocks that no SM has taken yet are dropped.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  std::uint64_t size() const { return blocks_; }

 private:
  std::uint64_t blocks_;
  std::uint64_t sms_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace hone
