#include <hone/half.h>

#include <bit>

#define __device__
namespace hone {
namespace {
// The conversions of kernels are written in CUDA's words for a change of type.
float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
}  // namespace
}  // namespace hone

#include "kernel_templates/small_float.cuh"

namespace hone::detail {

float float_of_bits(FloatFormat format, unsigned bits) { return hone::float_of_bits(format, bits); }
unsigned bits_of_float(FloatFormat format, float value) { return hone::bits_of_float(format, value); }

}  // namespace hone::detail

#undef __device__
