// WinnerRow: neighbouring size classes of one problem that the same candidate serves, as one line of a table.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

struct WinnerRow {
  cache::StoredWinner shown;  ///< the class whose figures stand for the row: the largest that was measured
  std::array<cache::RangeRecord, 3> sizes;  ///< of all classes together
  int classes = 1;
  int measured = 0;  ///< so many of them were measured themselves

  /// how_text() of the classes: "tuned, lent" where some were measured and the others were not.
  std::string how() const;
};

/// The winners sorted by device, toolchain and problem, classes joined where the candidates, with what their code
/// needs, are equal and the ranges touch in one extent and are equal in the others. Untuned classes are only joined
/// with those that have the same how_text(), and the same tuned shape.
std::vector<WinnerRow> join_classes(const std::vector<cache::StoredWinner>& winners);

}  // namespace hone::tuner
