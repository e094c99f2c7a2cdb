#include <hone/half.h>

#include <bit>

namespace {
// The conversions that the host device gives to kernels are written in CUDA's words for a change of type.
float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
}  // namespace

#include "runtime/device/host/prelude/half_conversions.h"

namespace hone {

half::half(float value) : bits(hone_host::half_of_float(value)) {}
half::operator float() const { return hone_host::float_of_half(bits); }

bfloat16::bfloat16(float value) : bits(hone_host::bfloat16_of_float(value)) {}
bfloat16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace hone
