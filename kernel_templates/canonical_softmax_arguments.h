// The arguments of canonical_softmax.cuh, as host and device see them.
#pragma once

#include "softmax_arguments.h"

namespace hone {

/// These make the weights relative to 1 (GuessedPowers of canonical_powers.cuh): log₂ e times the factor in two parts,
/// and the smallest element that has a weight of its own. They are NaNs if the factor is so large or small that they
/// would not be exact: all rows have other weights then.
template <class Acc>
struct GuessedFactors {
  Acc high, low, lowest;
};

template <class Acc>
struct CanonicalSoftmaxArguments : SoftmaxArguments<Acc> {
  GuessedFactors<Acc> guessed;
};

}  // namespace hone
