// canonical_exponential() and near_exponential() of the kernels have the bits of the definitions, by other means.
#include "tests/runtime/host_device/host_kernel.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/families/reduce/canonical_math.h"
#include "runtime/jit/embedded_sources.h"

namespace hone::test {
namespace {

/// Near every multiple of ln 2 ÷ 2 up to `most`, where k changes, down to where results are subnormal and then 0; and
/// at random.
template <class T>
std::vector<T> arguments(T most) {
  constexpr T kLowest = std::is_same_v<T, float> ? T(-106) : T(-748);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  std::vector<T> all{T(0), -T(0), -std::numeric_limits<T>::denorm_min(), -kInfinity,
                     std::numeric_limits<T>::lowest(), std::numeric_limits<T>::quiet_NaN()};
  for (T edge = std::floor(most / T(0.34657359027997264)) * T(0.34657359027997264); edge > kLowest;
       edge -= T(0.34657359027997264)) {
    T d = edge;
    for (int step = 0; step < 8; ++step, d = std::nextafter(d, -kInfinity)) all.push_back(std::min(d, most));
    all.push_back(std::min(std::round(edge), most));
  }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<T> any(kLowest, most);
  while (all.size() % 256 != 0 || all.size() < 20'000) all.push_back(any(random));
  return all;
}

template <class T>
void expect_bits_of_definition(std::string_view type, std::string_view function, T (*definition)(T), T most) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto device = make_host_device();
  const auto headers = embedded::kernel_templates();
  const HostKernel kernel(device,
                          fmt::format("#include \"canonical_exponentials.cuh\"\n"
                                      "extern \"C\" __global__ void entry({0}* x) {{\n"
                                      "  {0}& each = x[blockIdx.x * 256 + threadIdx.x];\n"
                                      "  each = hone::{1}(each);\n}}\n",
                                      type, function),
                          "entry", {headers.begin(), headers.end()});
  const std::vector<T> all = arguments<T>(most);
  const DeviceVector<T> x(device, all);
  kernel.launch({.grid = {static_cast<unsigned>(all.size() / 256)}, .block = {256}}, x.data());
  const std::vector<T> found = x.values();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const T expected = definition(all[i]);
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(found[i]));
    else
      ASSERT_EQ(std::bit_cast<Bits>(found[i]), std::bit_cast<Bits>(expected))
          << fmt::format("{}({:a})", function, all[i]);
  }
}

TEST(CanonicalExponential, HasTheBitsOfTheDefinition) {
  expect_bits_of_definition<float>("float", "canonical_exponential", canonical::exponential, 0);
  expect_bits_of_definition<double>("double", "canonical_exponential", canonical::exponential, 0);
}

TEST(CanonicalExponential, NearZeroHasTheBitsOfTheDefinition) {
  expect_bits_of_definition<float>("float", "near_exponential", canonical::near_exponential,
                                   canonical::Constants<float>::kMostNear);
  expect_bits_of_definition<double>("double", "near_exponential", canonical::near_exponential,
                                    canonical::Constants<double>::kMostNear);
}

}  // namespace
}  // namespace hone::test
