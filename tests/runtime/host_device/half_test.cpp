// Small floats: every number of every format to float, and floats at and around every rounding boundary back.
#include "tests/runtime/host_device/host_kernel.h"

#include <bit>
#include <cmath>
#include <limits>

#include <hone/half.h>
#include <hone/sdk/gpu_compiler.h>

#include "runtime/jit/embedded_sources.h"
#include "tests/support/names.h"

namespace hone::test {
namespace {

/// The definition of a format: explicit mantissa bits, and the exponents of its normal numbers.
struct Format {
  const char* type;
  int mantissa_bits;
  int min_exponent;
  int max_exponent;
};

template <class T>
constexpr Format kFormat;
template <>
constexpr Format kFormat<half>{"hone::Half", 10, -14, 15};
template <>
constexpr Format kFormat<bfloat16>{"hone::BFloat16", 7, -126, 127};
template <>
constexpr Format kFormat<float8_e4m3fn>{"hone::E4M3", 3, -6, 8};

std::vector<SourceFile> headers() {
  const auto all = embedded::kernel_templates();
  return {all.begin(), all.end()};
}

template <class T>
struct Model {
  using Bits = decltype(T::bits);
  using Limits = std::numeric_limits<T>;
  static constexpr unsigned kPatterns = 1u << (8 * sizeof(T));
  static constexpr unsigned kNan = kPatterns / 2 - 1;

  /// The value that a pattern stands for.
  static double model_value(unsigned bits) {
    const Format& format = kFormat<T>;
    const unsigned magnitude = bits % (kPatterns / 2);
    const int exponent_field = static_cast<int>(magnitude >> format.mantissa_bits);
    const double mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    const double sign = bits >= kPatterns / 2 ? -1 : 1;
    if (magnitude == kNan) return std::nan("");
    if (Limits::has_infinity && exponent_field == format.max_exponent - format.min_exponent + 2)
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    if (exponent_field == 0) return sign * std::ldexp(mantissa, format.min_exponent - format.mantissa_bits);
    return sign * std::ldexp(1 + std::ldexp(mantissa, -format.mantissa_bits), format.min_exponent + exponent_field - 1);
  }

  static std::string source() {
    return "#include \"half.cuh\"\nusing T = " + std::string(kFormat<T>.type) + R"(;
extern "C" __global__ void widen(const T* in, float* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = static_cast<float>(in[i]);
}
extern "C" __global__ void narrow(const float* in, T* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = T(in[i]);
})";
  }

  /// Four shuffles of one value a lane.
  static std::string shuffles() {
    return "#include \"half.cuh\"\nusing T = " + std::string(kFormat<T>.type) + R"(;
extern "C" __global__ void shuffles(const T* in, T* out) {
  if (blockDim.x > 32) out[0] = __shfl_sync(1u, in[0], 0);
  const int lane = threadIdx.x;
  out[lane] = __shfl_sync(0xffffffffu, in[lane], 5, 8);
  out[32 + lane] = __shfl_up_sync(0xffffffffu, in[lane], 3);
  out[64 + lane] = __shfl_down_sync(0xffffffffu, in[lane], 3);
  out[96 + lane] = __shfl_xor_sync(0xffffffffu, in[lane], 1);
})";
  }

  /// The same value, also of zeros and among NaNs.
  static void expect_same(float found, float expected, unsigned pattern) {
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(found)) << pattern;
    else ASSERT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << pattern;
  }
};

template <class T>
class HostHalf : public testing::Test {};

using SmallFloats = testing::Types<half, bfloat16, float8_e4m3fn>;
TYPED_TEST_SUITE(HostHalf, SmallFloats);

TYPED_TEST(HostHalf, ConvertsToFloatAsItsFormatSays) {
  using M = Model<TypeParam>;
  using Bits = typename M::Bits;
  const auto device = make_host_device();
  const HostKernel widen(device, M::source(), "widen", headers());
  std::vector<Bits> patterns(M::kPatterns);
  for (unsigned i = 0; i < M::kPatterns; ++i) patterns[i] = static_cast<Bits>(i);
  const DeviceVector<Bits> in(device, patterns);
  const DeviceVector<float> out(device, std::vector<float>(patterns.size()));
  widen.launch({}, static_cast<const Bits*>(in.data()), out.data(), static_cast<int>(patterns.size()));

  const std::vector<float> widened = out.values();
  for (unsigned i = 0; i < M::kPatterns; ++i) {
    const auto value = static_cast<float>(M::model_value(i));
    M::expect_same(widened[i], value, i);
    M::expect_same(static_cast<float>(std::bit_cast<TypeParam>(patterns[i])), value, i);
  }
}

/// From each finite value on: itself, the middle to the next one in magnitude, and the floats beside that. The value
/// after the largest is where the format would go on: from the middle on, it is rounded to the next pattern, which is
/// infinity or, of a format without, NaN.
TYPED_TEST(HostHalf, ConvertsFromFloatToTheNearestTiesToEven) {
  using M = Model<TypeParam>;
  using Bits = typename M::Bits;
  std::vector<float> inputs;
  std::vector<Bits> expected;
  for (unsigned i = 0; i < M::kPatterns; ++i) {
    const double value = M::model_value(i), next = M::model_value(i + 1);
    if (!std::isfinite(value)) continue;
    const double after = std::isfinite(next) ? next : 2 * value - M::model_value(i - 1);
    const auto middle = static_cast<float>(value + (after - value) / 2);
    const auto lower = static_cast<Bits>(i);
    const bool is_nan = (i + 1) % (M::kPatterns / 2) == M::kNan;  // which has no sign
    const auto upper = static_cast<Bits>(is_nan ? M::kNan : i + 1);
    const float outwards = std::copysign(std::numeric_limits<float>::infinity(), middle);
    inputs.insert(inputs.end(), {static_cast<float>(value), std::nextafter(middle, 0.0f), middle,
                                 std::nextafter(middle, outwards)});
    expected.insert(expected.end(), {lower, lower, i % 2 == 0 ? lower : upper, upper});
  }
  using Limits = typename M::Limits;
  const Bits too_large = (Limits::has_infinity ? Limits::infinity() : Limits::quiet_NaN()).bits;
  for (const float value : {std::nanf("1"), -std::nanf("7"), std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::max()}) {
    inputs.push_back(value);
    expected.push_back(std::isnan(value) ? static_cast<Bits>(M::kNan) : too_large);
  }

  const auto device = make_host_device();
  const HostKernel narrow(device, M::source(), "narrow", headers());
  const DeviceVector<float> in(device, inputs);
  const DeviceVector<Bits> out(device, std::vector<Bits>(inputs.size()));
  narrow.launch({}, static_cast<const float*>(in.data()), out.data(), static_cast<int>(inputs.size()));
  const std::vector<Bits> narrowed = out.values();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(narrowed[i], expected[i]) << inputs[i];
    ASSERT_EQ(TypeParam(inputs[i]).bits, expected[i]) << inputs[i];
  }
}

TYPED_TEST(HostHalf, NumericLimitsAreTheModels) {
  using M = Model<TypeParam>;
  using Limits = typename M::Limits;
  EXPECT_EQ(M::model_value(Limits::max().bits), -M::model_value(Limits::lowest().bits));
  EXPECT_EQ(std::ilogb(M::model_value(Limits::max().bits)), Limits::max_exponent - 1);
  EXPECT_EQ(kFormat<TypeParam>.max_exponent, Limits::max_exponent - 1);
  EXPECT_EQ(kFormat<TypeParam>.min_exponent, Limits::min_exponent - 1);
  EXPECT_EQ(kFormat<TypeParam>.mantissa_bits, Limits::digits - 1);
  EXPECT_FALSE(std::isfinite(M::model_value(Limits::max().bits + 1u)));
  EXPECT_GT(M::model_value(Limits::denorm_min().bits), 0);
  EXPECT_TRUE(std::isnan(M::model_value(Limits::quiet_NaN().bits)));
}

TEST(HostHalfSum, TakesHalves) {
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

TYPED_TEST(HostHalf, ShufflesMoveTheBits) {
  using M = Model<TypeParam>;
  using Bits = typename M::Bits;
  const auto device = make_host_device();
  const HostKernel kernel(device, M::shuffles(), "shuffles", headers());
  std::vector<Bits> bits(64);
  for (std::size_t i = 0; i < 64; ++i) bits[i] = static_cast<Bits>(0xfff0u + 9 * i);
  const DeviceVector<Bits> in(device, bits), out(device, std::vector<Bits>(128));
  kernel.launch({}, static_cast<const Bits*>(in.data()), out.data());
  const auto moved = out.values();
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(moved[lane], bits[lane / 8 * 8 + 5]);
    EXPECT_EQ(moved[32 + lane], bits[lane < 3 ? lane : lane - 3]);
    EXPECT_EQ(moved[64 + lane], bits[lane + 3 < 32 ? lane + 3 : lane]);
    EXPECT_EQ(moved[96 + lane], bits[lane ^ 1]);
  }
  EXPECT_THAT(kernel.failure({.block = {64}}, static_cast<const Bits*>(in.data()), out.data()),
              Names("omits", "calling", "unit.cu:4"));
}

TYPED_TEST(HostHalf, CompilesForGpus) {
  using M = Model<TypeParam>;
  for (const char* architecture : {"sm_75", "sm_89", "sm_90"}) {
    try {
      const Unit conversions{"conversions", M::source(), headers(), {"widen", "narrow"}};
      EXPECT_FALSE(compile_for_gpu(conversions, architecture).code.empty());
      const Unit exchanges{"shuffles", M::shuffles(), headers(), {"shuffles"}};
      EXPECT_FALSE(compile_for_gpu(exchanges, architecture).code.empty());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      GTEST_SKIP() << error.what();
    }
  }
}

}  // namespace
}  // namespace hone::test
