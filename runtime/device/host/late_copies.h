// LateCopies: the asynchronous copies of a block that have not landed, and when they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/device/host/prelude/host_abi.h"

namespace hone {

/// Time is counted in turns of lanes. A copy with a counter lands at once, within a few turns of each lane, or, one of
/// several, only after many, when all that does not wait for it has been done. One without a counter belongs to a group
/// of its lane, and lands at once or when the lane waits for the group.
///
/// The seed and the block alone decide how many turns; blocks that wait for others have more or fewer of these each
/// time.
class LateCopies {
 public:
  struct InFlight {
    hone_host::AsyncCopy copy;
    std::size_t lane = 0;  ///< that started it
  };

  void begin_block(std::uint64_t seed, hone_host::Index3 block, std::size_t lanes);

  void start(std::size_t lane, const hone_host::AsyncCopy& copy);
  void end_group(std::size_t lane) {
    if (has_started_) ++groups_[lane].open;
  }
  void wait_for_groups(std::size_t lane, unsigned left);

  /// A lane gets its turn.
  void pass_turn() {
    if (++now_ >= next_due_) land_due();
  }

  /// The one lane that does not wait for others goes on.
  void pass_round() {
    now_ += lanes_ - 1;
    pass_turn();
  }

  /// How many copies have not landed.
  std::size_t count() const;

  /// One of those that have not landed, of which there is at least one.
  InFlight any() const;

 private:
  struct Counted {
    InFlight in_flight;
    std::uint64_t due = 0;
  };
  struct Grouped {
    hone_host::AsyncCopy copy;
    std::uint64_t group = 0;
  };
  struct Groups {
    std::uint64_t open = 0;  ///< the number of the group that copies belong to now
    std::vector<Grouped> copies;
  };

  void start_first();
  std::uint64_t below(std::uint64_t bound);
  std::uint64_t turns_until_landing();
  void land_due();

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  std::uint64_t seed_ = 0;
  hone_host::Index3 block_{};
  std::minstd_rand random_;
  std::uint64_t now_ = 0, next_due_ = kNever, lanes_ = 1;
  bool has_started_ = false;  ///< a copy: most blocks have none, and are not to pay for these
  std::vector<Counted> counted_;
  std::vector<Groups> groups_;  ///< of each lane
};

}  // namespace hone
