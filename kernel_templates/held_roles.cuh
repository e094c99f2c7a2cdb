// The roles of the warps of a block of row_held.cuh.
#pragma once

namespace hone {

/// A block has as many warps as have a role. Groups of warps add up parts, and as many write them; groups of a kind
/// take rows in turn.
///
/// kMostThreads: of a block. kPassFirst_: there is one group of each kind, and the chunks of a part that the ring has
/// no room for are its first ones, not its last (row_held.cuh). kAhead_: chunks of a part that are fetched to L2 before
/// the ring has room.
template <unsigned kMostThreads, unsigned kCombiningWarps_, unsigned kTurns_, bool kPassFirst_, unsigned kAhead_ = 0>
struct HeldRoles {
  static constexpr unsigned kCombiningWarps = kCombiningWarps_, kTurns = kTurns_, kAhead = kAhead_;
  static constexpr bool kPassFirst = kPassFirst_;
  static_assert(!kPassFirst || kTurns == 1);
  static constexpr unsigned kLoadingWarps = 2;  ///< the second one has no role unless kPassFirst
  static constexpr unsigned kFirstSum = kLoadingWarps + 1 + kCombiningWarps;
  static constexpr unsigned kEven = (kMostThreads / 32 - kFirstSum) / (2 * kTurns);
  static constexpr unsigned kGroupWarps = kEven < 8 ? kEven : kEven / 4 * 4;  ///< an SM has four schedulers
  static constexpr unsigned kFirstWrite = kFirstSum + kTurns * kGroupWarps;
  static constexpr unsigned kThreads = (kFirstWrite + kTurns * kGroupWarps) * 32;
  static constexpr unsigned kGroupThreads = kGroupWarps * 32;
  static constexpr bool kHasRegisters = kThreads <= 896;  ///< for 72 of a thread, eight more than if it were 1024
};

}  // namespace hone
