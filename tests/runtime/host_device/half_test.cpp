// 16-bit floats: every half and bfloat16 to float, and floats at and around every rounding boundary back.
#include "tests/runtime/host_device/host_kernel.h"

#include <bit>
#include <cmath>
#include <limits>

#include <hone/sdk/gpu_compiler.h>

#include "runtime/jit/embedded_sources.h"

namespace hone::test {
namespace {

/// A 16-bit format: explicit mantissa bits, and the exponents of its normal numbers.
struct Format {
  const char* type;
  int mantissa_bits;
  int min_exponent;
  int max_exponent;
};
constexpr Format kHalf{"hone::Half", 10, -14, 15}, kBFloat16{"hone::BFloat16", 7, -126, 127};

std::vector<SourceFile> headers() {
  const auto all = embedded::kernel_templates();
  return {all.begin(), all.end()};
}

/// The value that a pattern stands for.
double model_value(const Format& format, unsigned bits) {
  const int exponent_field = static_cast<int>(bits >> format.mantissa_bits) & ((1 << (15 - format.mantissa_bits)) - 1);
  const double mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int top = format.max_exponent - format.min_exponent + 2;
  if (exponent_field == top) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent_field == 0) return sign * std::ldexp(mantissa, format.min_exponent - format.mantissa_bits);
  return sign * std::ldexp(1 + std::ldexp(mantissa, -format.mantissa_bits), format.min_exponent + exponent_field - 1);
}

std::string source(const Format& format) {
  return "#include \"half.cuh\"\nusing T = " + std::string(format.type) + R"(;
extern "C" __global__ void widen(const T* in, float* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = static_cast<float>(in[i]);
}
extern "C" __global__ void narrow(const float* in, T* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = T(in[i]);
})";
}

void expect_conversions(const Format& format) {
  const auto device = make_host_device();
  const HostKernel widen(device, source(format), "widen", headers()),
      narrow(device, source(format), "narrow", headers());
  std::vector<std::uint16_t> patterns(65536);
  for (unsigned i = 0; i < 65536; ++i) patterns[i] = static_cast<std::uint16_t>(i);
  const DeviceVector<std::uint16_t> halves(device, patterns);
  const DeviceVector<float> floats(device, std::vector<float>(65536));
  widen.launch({}, static_cast<const std::uint16_t*>(halves.data()), floats.data(), 65536);

  const std::vector<float> widened = floats.values();
  for (unsigned i = 0; i < 65536; ++i) {
    const auto value = static_cast<float>(model_value(format, i));
    if (std::isnan(value)) EXPECT_TRUE(std::isnan(widened[i])) << i;
    else ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), std::bit_cast<std::uint32_t>(value)) << i;
  }

  // From each finite value on: itself, the middle to the next one in magnitude, and the floats beside that. The value
  // after the largest is where the format would go on without infinities: from the middle on, it is rounded to ∞.
  std::vector<float> inputs;
  std::vector<std::uint16_t> expected;
  for (unsigned i = 0; i < 65536; ++i) {
    const double value = model_value(format, i), next = model_value(format, i + 1);
    if (!std::isfinite(value)) continue;
    const double after = std::isfinite(next) ? next : 2 * value - model_value(format, i - 1);
    const auto middle = static_cast<float>(value + (after - value) / 2);
    const auto upper = static_cast<std::uint16_t>(i + 1);
    const float outwards = std::copysign(std::numeric_limits<float>::infinity(), middle);
    inputs.insert(inputs.end(), {static_cast<float>(value), std::nextafter(middle, 0.0f), middle,
                                 std::nextafter(middle, outwards)});
    expected.insert(expected.end(), {patterns[i], patterns[i], i % 2 == 0 ? patterns[i] : upper, upper});
  }
  const DeviceVector<float> from(device, inputs);
  const DeviceVector<std::uint16_t> to(device, std::vector<std::uint16_t>(inputs.size()));
  narrow.launch({}, static_cast<const float*>(from.data()), to.data(), static_cast<int>(inputs.size()));
  const std::vector<std::uint16_t> narrowed = to.values();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    ASSERT_EQ(narrowed[i], expected[i]) << format.type << " " << inputs[i];
}

TEST(HostHalf, HalvesConvertAsTheirFormatSays) { expect_conversions(kHalf); }
TEST(HostHalf, BFloat16sConvertAsTheirFormatSays) { expect_conversions(kBFloat16); }

TEST(HostHalf, NaNBecomesTheCanonicalOne) {
  const auto device = make_host_device();
  for (const Format& format : {kHalf, kBFloat16}) {
    const HostKernel narrow(device, source(format), "narrow", headers());
    const DeviceVector<float> in(device, {std::nanf("1"), -std::nanf("7"), std::numeric_limits<float>::infinity()});
    const DeviceVector<std::uint16_t> out(device, std::vector<std::uint16_t>(3));
    narrow.launch({}, static_cast<const float*>(in.data()), out.data(), 3);
    const auto infinity = static_cast<std::uint16_t>(format.mantissa_bits == 10 ? 0x7c00 : 0x7f80);
    EXPECT_THAT(out.values(), testing::ElementsAre(0x7fff, 0x7fff, infinity));
  }
}

TEST(HostHalf, ReduceTakesHalves) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(#include "half.cuh"
#include "reduce_ops.cuh"
#include "reduce.cuh"
using Kernel = hone::Reduce<hone::Sum<hone::Half, float, unsigned, false>, hone::OneArray, hone::Outputs<float>,
                            128, 16, 2>;
extern "C" __global__ void entry(const hone::Half* in, unsigned n, float* out) {
  Kernel::reduce<hone::Grid::none>({{in}, n, nullptr, {out}, 0});
}
)", "entry", headers());
  const DeviceVector<std::uint16_t> in(device, std::vector<std::uint16_t>(3001, 0x3e00));  // 1.5
  const DeviceVector<float> out(device, {0.0f});
  kernel.launch({.block = {128}}, static_cast<const std::uint16_t*>(in.data() + 1), 3000u, out.data());
  EXPECT_EQ(out.values()[0], 4500.0f);
}

/// Four shuffles of one value a lane.
std::string shuffles(const Format& format) {
  return "#include \"half.cuh\"\nusing T = " + std::string(format.type) + R"(;
extern "C" __global__ void shuffles(const T* in, T* out) {
  if (blockDim.x > 32) out[0] = __shfl_sync(1u, in[0], 0);
  const int lane = threadIdx.x;
  out[lane] = __shfl_sync(0xffffffffu, in[lane], 5, 8);
  out[32 + lane] = __shfl_up_sync(0xffffffffu, in[lane], 3);
  out[64 + lane] = __shfl_down_sync(0xffffffffu, in[lane], 3);
  out[96 + lane] = __shfl_xor_sync(0xffffffffu, in[lane], 1);
})";
}

TEST(HostHalf, ShufflesMoveTheBits) {
  const auto device = make_host_device();
  for (const Format& format : {kHalf, kBFloat16}) {
    const HostKernel kernel(device, shuffles(format), "shuffles", headers());
    std::vector<std::uint16_t> bits(64);
    for (std::size_t i = 0; i < 64; ++i) bits[i] = static_cast<std::uint16_t>(0xfff0u + 9 * i);
    const DeviceVector<std::uint16_t> in(device, bits), out(device, std::vector<std::uint16_t>(128));
    kernel.launch({}, static_cast<const std::uint16_t*>(in.data()), out.data());
    const auto moved = out.values();
    for (std::size_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(moved[lane], bits[lane / 8 * 8 + 5]);
      EXPECT_EQ(moved[32 + lane], bits[lane < 3 ? lane : lane - 3]);
      EXPECT_EQ(moved[64 + lane], bits[lane + 3 < 32 ? lane + 3 : lane]);
      EXPECT_EQ(moved[96 + lane], bits[lane ^ 1]);
    }
    EXPECT_THAT(kernel.failure({.block = {64}}, static_cast<const std::uint16_t*>(in.data()), out.data()),
                testing::AllOf(testing::HasSubstr("omits the calling lane"), testing::HasSubstr("unit.cu:4")));
  }
}

TEST(HostHalf, CompilesForGpus) {
  for (const Format& format : {kHalf, kBFloat16}) {
    for (const char* architecture : {"sm_75", "sm_90"}) {
      try {
        EXPECT_FALSE(
            compile_for_gpu({format.type, source(format), headers(), {"widen", "narrow"}}, architecture).code.empty());
        EXPECT_FALSE(
            compile_for_gpu({format.type, shuffles(format), headers(), {"shuffles"}}, architecture).code.empty());
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        GTEST_SKIP() << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace hone::test
