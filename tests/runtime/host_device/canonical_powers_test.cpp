// The weights of reproducible softmax in kernels have the bits of the definition, by other means, and are as exact as
// they are said to be.
#include "tests/runtime/host_device/host_kernel.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/families/softmax/canonical_powers.h"
#include "runtime/jit/embedded_sources.h"

namespace hone::test {
namespace {

/// Largest elements of rows and twice their scales: both ends of the exponents of some levels, large ones, relative to
/// which an exponent is exact or not, and scales of all sizes.
template <class T>
std::vector<std::pair<T, T>> origins_and_factors() {
  using Limits = std::numeric_limits<T>;
  std::vector<std::pair<T, T>> all{{T(0), T(2)}, {-T(0), T(-2)}, {Limits::max(), T(2)}, {-Limits::max(), T(-3)},
                                   {-Limits::max(), T(2)}, {Limits::max(), Limits::max()},
                                   {Limits::denorm_min(), Limits::max()}, {Limits::max(), Limits::denorm_min()},
                                   {T(3), Limits::denorm_min()}, {T(1), T(1e-20)}};
  for (const T n : {T(-21), T(-20), T(43), T(44), T(45), T(108), T(384), T(385), T(1e5), T(3e6), T(1e9), T(1e13)})
    for (const T factor : {T(2), T(-1.3), T(1e-10), T(1e10)})
      all.push_back({n * T(0.69314718055994531) / (factor / 2), factor});
  return all;
}

/// Elements of such a row: near the largest one, far below it, and without weight.
template <class T>
std::vector<T> elements(T origin, T factor) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(11);
  std::exponential_distribution<T> below(T(0.05));
  const T side = factor < 0 ? T(1) : T(-1);
  std::vector<T> all{origin, side * Limits::infinity(), side * Limits::max()};
  T near = origin;
  for (int step = 0; step < 9; ++step) all.push_back(near = std::nextafter(near, side * Limits::infinity()));
  while (all.size() < 256) {
    const T x = origin - below(random) / (factor / 2);
    all.push_back(std::isnan(x) || (factor < 0 ? x < origin : x > origin) ? origin : x);
  }
  return all;
}

std::string_view spelled(WeightPrecision precision) {
  return precision == WeightPrecision::full ? "hone::WeightPrecision::full" : "hone::WeightPrecision::reduced";
}

template <class T>
void expect_bits_of_weights(std::string_view type, WeightPrecision precision) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto device = make_host_device();
  const auto headers = embedded::kernel_templates();
  const HostKernel kernel(device,
                          fmt::format("#include \"canonical_powers.cuh\"\n"
                                      "extern \"C\" __global__ void entry({0}* x, {0} origin, {0} factor) {{\n"
                                      "  x[threadIdx.x] = hone::Powers<{0}, {1}>(origin, factor)(x[threadIdx.x]);\n}}\n",
                                      type, spelled(precision)),
                          "entry", {headers.begin(), headers.end()});
  for (const auto& [origin, factor] : origins_and_factors<T>()) {
    const std::vector<T> all = elements(origin, factor);
    const DeviceVector<T> x(device, all);
    kernel.launch({.grid = {1}, .block = {256}}, x.data(), origin, factor);
    const std::vector<T> found = x.values();
    const canonical::CanonicalPowers<T> weight(origin, factor, precision);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(std::bit_cast<Bits>(found[i]), std::bit_cast<Bits>(weight(all[i])))
          << fmt::format("{:a} beside {:a}, factor {:a}: {:a}", all[i], origin, factor, found[i]);
  }
}

TEST(CanonicalPowers, HaveTheBitsOfTheDefinition) {
  for (const WeightPrecision precision : {WeightPrecision::full, WeightPrecision::reduced})
    expect_bits_of_weights<float>("float", precision);
  expect_bits_of_weights<double>("double", WeightPrecision::full);
}

/// Weights relative to 1, as kernels guess them: −1 where they are not the row's, −2 where that is not found out.
template <class T>
void expect_bits_of_guesses(std::string_view type, WeightPrecision precision) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto device = make_host_device();
  const auto headers = embedded::kernel_templates();
  const HostKernel kernel(
      device,
      fmt::format("#include \"canonical_powers.cuh\"\n"
                  "extern \"C\" __global__ void entry({0}* x, {0} origin, {0} factor, {0} high, {0} low,\n"
                  "                                 {0} lowest) {{\n"
                  "  const hone::GuessedPowers<{0}, {1}> guessed{{{{high, low, lowest}}, factor}};\n"
                  "  const bool is_one = guessed.are_of(factor < 0 ? -origin : origin);\n"
                  "  hone::Pack<{0}, 1> pack[1] = {{hone::Pack<{0}, 1>::filled(x[threadIdx.x])}};\n"
                  "  guessed.turn(pack);\n"
                  "  x[threadIdx.x] = is_one ? guessed(pack[0][0]) : -1;\n"
                  "  if (high == high && is_one != hone::Powers<{0}, {1}>(origin, factor).is_relative_to_1())\n"
                  "    x[threadIdx.x] = -2;\n}}\n",
                  type, spelled(precision)),
      "entry", {headers.begin(), headers.end()});
  std::size_t guesses = 0;
  for (const auto& [origin, factor] : origins_and_factors<T>()) {
    const std::vector<T> all = elements(origin, factor);
    const DeviceVector<T> x(device, all);
    const GuessedFactors<T> guessed = canonical::guessed_factors(factor);
    kernel.launch({.grid = {1}, .block = {256}}, x.data(), origin, factor, guessed.high, guessed.low, guessed.lowest);
    const std::vector<T> found = x.values();
    const canonical::CanonicalPowers<T> weight(origin, factor, precision);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const T expected = found[i] == T(-1) ? T(-1) : weight(all[i]);
      ASSERT_EQ(std::bit_cast<Bits>(found[i]), std::bit_cast<Bits>(expected))
          << fmt::format("{:a} beside {:a}, factor {:a}: {:a}", all[i], origin, factor, found[i]);
      if (found[i] != T(-1)) ++guesses;
    }
  }
  EXPECT_GE(guesses, 12 * 256U);
}

TEST(CanonicalPowers, RelativeTo1HaveTheSameBits) {
  for (const WeightPrecision precision : {WeightPrecision::full, WeightPrecision::reduced})
    expect_bits_of_guesses<float>("float", precision);
  expect_bits_of_guesses<double>("double", WeightPrecision::full);
}

/// The largest error of weights relative to that of the largest element, less so much for each unit that the exponent is
/// below the largest one.
double largest_error(WeightPrecision precision, long double of_distance) {
  long double largest = 0;
  for (const auto& [origin, factor] : origins_and_factors<float>()) {
    const canonical::CanonicalPowers<float> weight(origin, factor, precision);
    for (const float x : elements(origin, factor)) {
      const long double exponent = (static_cast<long double>(x) - origin) * factor / 2, exact = std::exp(exponent);
      if (exact < 0x1p-140L) continue;
      const long double found = static_cast<long double>(weight(x)) / weight(origin);
      largest = std::max(largest, std::fabs(found / exact - 1) - of_distance * std::fabs(exponent));
    }
  }
  return static_cast<double>(largest);
}

/// Both weights may be an ulp off, or what the polynomial of degree 4 is.
TEST(CanonicalPowers, HaveTheErrorsThatAreDocumented) {
  EXPECT_LT(largest_error(WeightPrecision::full, 0), 2.5 * 0x1p-24);
  EXPECT_LT(largest_error(WeightPrecision::reduced, 0x1.4p-24L), 98 * 0x1p-24);
  EXPECT_GT(largest_error(WeightPrecision::reduced, 0x1.4p-24L), 20 * 0x1p-24) << "as exact as others";
}

/// weight_of() of expected_bits.py, which shares nothing with the library. Results of 16 bits show little of weights.
TEST(CanonicalPowers, HaveTheBitsOfASecondProgram) {
  struct Row {
    float x, full, reduced;
  };
  const auto expect = [](float origin, float factor, std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      EXPECT_EQ((canonical::CanonicalPowers<float>(origin, factor, WeightPrecision::full)(row.x)), row.full) << row.x;
      EXPECT_EQ((canonical::CanonicalPowers<float>(origin, factor, WeightPrecision::reduced)(row.x)), row.reduced)
          << row.x;
    }
  };
  expect(0, 2, {{0, 0x1p48f, 0x1p48f},
                {-0.3125f, 0x1.769652p47f, 0x1.769622p47f},
                {-1.7f, 0x1.7622c6p45f, 0x1.76229ap45f},
                {-40, 0x1.397924p-10f, 0x1.397946p-10f},
                {-500, 0x1.00001ap-124f, 0x1.000036p-124f}});
  expect(-3, -1.4f, {{-3, 0x1.055142p51f, 0x1.055138p51f},
                     {-2.75f, 0x1.b6bac0p50f, 0x1.b6bb04p50f},
                     {8.1f, 0x1.c3eb24p39f, 0x1.c3eb78p39f},
                     {1e30f, 0x1.ffff12p-125f, 0x1.ffff34p-125f}});
  expect(1000, 3, {{1000, 0x1.07aa32p36f, 0x1.07a5fep36f},
                   {999.5f, 0x1.f22f90p34f, 0x1.f227dcp34f},
                   {950.25f, 0x1.4d7a24p-72f, 0x1.4d7568p-72f}});
}

}  // namespace
}  // namespace hone::test
