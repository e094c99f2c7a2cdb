// The arguments of canonical_softmax.cuh, as host and device see them.
#pragma once

#include "softmax_arguments.h"

namespace hone {

/// How exact weights are: to their last digit, or, with three operations less each, as far as results of 16 bits show it.
enum class WeightPrecision { full, reduced };

/// These make the weights relative to 1 (GuessedPowers of canonical_powers.cuh): log₂ e times the factor in two parts
/// (in reduced precision the first is all), and the smallest element that has a weight of its own. They are NaNs if the
/// factor is so large or small that they would not be exact: all rows have other weights then.
template <class Acc>
struct GuessedFactors {
  Acc high, low, lowest;
};

/// Where the input is, from its first element to its last one: packs may reach beyond a row, but not beyond this.
struct InputBytes {
  unsigned long long begin, end;  ///< addresses
};

template <class Acc>
struct CanonicalSoftmaxArguments : SoftmaxArguments<Acc> {
  GuessedFactors<Acc> guessed;
  InputBytes input = {};
  unsigned kept_rows = 1;  ///< of canonical_softmax_held.cuh: rows whose chunks' sums a block keeps, a power of two
};

}  // namespace hone
