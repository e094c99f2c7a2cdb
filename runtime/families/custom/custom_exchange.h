// exchanged_elements(): whether a combination of the caller's gives the same bits for exchanged operands.
#pragma once

#include <string>

#include <hone/dtype.h>
#include <hone/kernel.h>

namespace hone {

inline constexpr int kSerialThreads = 1024;  ///< serial.cuh

/// Two elements for which the only kernel of `unit`, combine_both_ways() of serial.cuh, gives other bits when they are
/// exchanged, with both results; "" if none were found, or none could be tried. Compiles for the host device.
std::string exchanged_elements(const Unit& unit, DType accumulator);

}  // namespace hone
