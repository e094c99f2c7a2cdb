// Laws of a reduction of the caller's, tried on the host device: whether its combination gives the same bits for
// exchanged operands, and whether its identity is one.
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

/// Says for which element combine(identity, x) or combine(x, identity) is not x, as part of a sentence; "" if none was
/// found, or nothing could be tried. The only kernel of `unit` takes elements of `dtype` and leaves the accumulators
/// of each: x in out[0], the two combinations in out[1] and out[2]. They may differ by `relative_tolerance`. Floats are
/// of moderate magnitude, since a large finite number is a usual identity where no element comes near it. Compiles for
/// the host device.
std::string identity_fault(const Unit& unit, DType dtype, DType accumulator, double relative_tolerance);

}  // namespace hone
