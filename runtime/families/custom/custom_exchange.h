// why_not_reproducible(): whether a combination of the caller's gives the same bits for exchanged operands.
#pragma once

#include <string>

#include <hone/dtype.h>
#include <hone/kernel.h>

namespace hone {

inline constexpr int kSerialThreads = 1024;  ///< serial.cuh

/// Says why the combination cannot have reproducible numerics, as part of a sentence: two elements for which the only
/// kernel of `unit`, combine_both_ways() of serial.cuh, gives other bits when they are exchanged, with both results; or
/// that it does not end. "" if neither was found, or nothing could be tried. Compiles for the host device.
std::string why_not_reproducible(const Unit& unit, DType accumulator);

}  // namespace hone
