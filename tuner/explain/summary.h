// print_summary(): why a winner takes as long as it does, in ten lines.
#pragma once

#include <iosfwd>
#include <vector>

#include "cache/records.h"
#include "tuner/explain/explanation.h"
#include "tuner/winners/limits.h"

namespace hone::tuner {

/// A winner, with the tuning in which its candidate was measured. A lent one was measured in another class, where
/// another candidate may have won; its own times, bytes and extents are those of that class all the same.
struct ExplainedWinner {
  const cache::StoredWinner& stored;
  const cache::TuningRecord& tuning;
  const Explanation& explanation;
  const DeviceCeilings& ceilings;  ///< without the winner of the class in which it was measured

  /// Bytes in flight per SM of the winner's trial; 0: not known.
  std::int64_t bytes_in_flight() const {
    return explanation.winner != nullptr ? explanation.winner->bytes_in_flight_per_sm : 0;
  }
  WinnerLimit limit() const { return limit_of(stored, bytes_in_flight(), ceilings); }
};

/// `columns`: those of the terminal, at which lines are wrapped; 0 where it is none.
void print_summary(const ExplainedWinner& explained, std::ostream& out, int columns);

/// The candidates by what became of them and why, each group with its fastest.
void print_groups(const ExplainedWinner& explained, std::ostream& out, int columns);

}  // namespace hone::tuner
