#include "runtime/families/custom/custom_exchange.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <hone/device.h>
#include <hone/error.h>

#include "kernel_templates/reduce_arguments.h"

namespace hone {
namespace {

constexpr std::size_t kRandomPairs = 1000;

template <class T>
struct Pairs {
  std::vector<T> a, b;
};

/// Every pair of numbers at which arithmetic is awkward, and some at random.
template <class T>
Pairs<T> pairs() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> awkward{T(1), T(2), T(0), T(3), T(7), Limits::max(), Limits::lowest()};
  if constexpr (Limits::is_signed) awkward.push_back(T(-1));
  if constexpr (std::is_floating_point_v<T>)
    awkward.insert(awkward.end(), {-T(0), T(0.1), Limits::epsilon() / 2, Limits::min(), Limits::denorm_min(),
                                   Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
  Pairs<T> all;
  for (std::size_t i = 0; i < awkward.size(); ++i)
    for (std::size_t j = i + 1; j < awkward.size(); ++j) {
      all.a.push_back(awkward[i]);
      all.b.push_back(awkward[j]);
    }
  std::mt19937_64 random(1);
  const auto any = [&] {
    if constexpr (std::is_floating_point_v<T>)
      return std::ldexp(std::uniform_real_distribution<T>(-2, 2)(random), static_cast<int>(random() % 61) - 30);
    else return static_cast<T>(random());
  };
  for (std::size_t i = 0; i < kRandomPairs; ++i) {
    all.a.push_back(any());
    all.b.push_back(any());
  }
  return all;
}

template <class T>
bool has_same_bits(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) && std::isnan(b)) return true;  // results have a single NaN
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Runs the unit's only kernel, and describes the first pair whose results differ; "" if there is none.
template <class T>
std::string first_difference(const Unit& unit) {
  const std::shared_ptr<Device> device = Device::open("host");
  const std::unique_ptr<Module> module = device->load(device->compile(unit), unit.entries);
  const Pairs<T> given = pairs<T>();
  const std::size_t count = given.a.size(), bytes = count * sizeof(T);
  const DeviceBuffer a(device, bytes), b(device, bytes), there(device, bytes), back(device, bytes);
  device->copy_to_device(a.data(), given.a.data(), bytes, nullptr);
  device->copy_to_device(b.data(), given.b.data(), bytes, nullptr);
  Launch launch;
  launch.block.x = kSerialThreads;
  launch.arguments.push(ReduceArguments{.in = {a.data(), b.data()},
                                        .n = count,
                                        .workspace = nullptr,
                                        .out = {there.data(), back.data()},
                                        .partials = 0});
  device->launch(module->kernel(0), launch, nullptr);
  std::vector<T> forwards(count), exchanged(count);
  device->copy_to_host(forwards.data(), there.data(), bytes, nullptr);
  device->copy_to_host(exchanged.data(), back.data(), bytes, nullptr);
  device->synchronize(nullptr);
  for (std::size_t i = 0; i < count; ++i)
    if (!has_same_bits(forwards[i], exchanged[i]))
      return fmt::format("combine({0}, {1}) is {2}, but combine({1}, {0}) is {3}", given.a[i], given.b[i], forwards[i],
                         exchanged[i]);
  return "";
}

}  // namespace

std::string exchanged_elements(const Unit& unit, DType accumulator) {
  std::string found;
  try {
    with_element_type(accumulator, [&]<class T>(T) {
      if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) found = first_difference<T>(unit);
    });
  } catch (const Error&) {
    // Without a compiler, or with expressions that do not compile, there is nothing to show.
  }
  return found;
}

}  // namespace hone
