#include "runtime/families/custom/custom_exchange.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/host_check.h>

#include "kernel_templates/reduce_arguments.h"

namespace hone {
namespace {

constexpr std::size_t kRandomPairs = 1000;

/// Trying all pairs takes milliseconds.
constexpr std::chrono::seconds kPatience{1};

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

/// Tries pairs with the unit's only kernel, and keeps the first whose results differ.
template <class T>
class Exchange {
 public:
  std::string why_not_reproducible(const Unit& unit) {
    const std::size_t bytes = given_.a.size() * sizeof(T);
    HostCheck check{.unit = unit,
                    .buffers = {CheckBuffer::of("a", given_.a), CheckBuffer::of("b", given_.b),
                                {"there", std::vector<std::byte>(bytes)}, {"back", std::vector<std::byte>(bytes)}},
                    .run = {},
                    .orders = {{}},
                    .looks_for_lost_updates = false,
                    .deadline = kPatience};
    // Called again for the places of buffers, which is of no interest here.
    check.run = [&](const HostRun& run) {
      if (!std::exchange(is_tried_, true)) try_pairs(run, 0, given_.a.size());
    };
    const HostCheckReport report = check_on_host(check);
    if (report.ran_too_long)
      return fmt::format("combine() was stopped on the host device, where it did not end within {} s for two elements",
                         kPatience.count());
    return found_.empty() ? "" : fmt::format("exchanged operands must give the same bits, and {}", found_);
  }

 private:
  /// A pair that ends the kernel, as by a division by zero, hides no other one: both halves are tried without it.
  void try_pairs(const HostRun& run, std::size_t begin, std::size_t end) {
    try {
      launch(run, begin, end - begin);
      find(run, begin, end);
    } catch (const Error&) {
      if (std::chrono::steady_clock::now() - started_ > kPatience) throw;
      if (end - begin == 1) return;
      const std::size_t middle = begin + (end - begin) / 2;
      try_pairs(run, begin, middle);
      if (found_.empty()) try_pairs(run, middle, end);
    }
  }

  void launch(const HostRun& run, std::size_t begin, std::size_t count) const {
    Launch launch;
    launch.block.x = kSerialThreads;
    launch.arguments.push(ReduceArguments{.in = {run.buffer<T>(0) + begin, run.buffer<T>(1) + begin},
                                          .n = count,
                                          .workspace = nullptr,
                                          .out = {run.buffer<T>(2) + begin, run.buffer<T>(3) + begin},
                                          .partials = 0});
    run.launch(launch);
  }

  void find(const HostRun& run, std::size_t begin, std::size_t end) {
    const T *const forwards = run.buffer<T>(2), *const exchanged = run.buffer<T>(3);
    for (std::size_t i = begin; i < end && found_.empty(); ++i)
      if (!has_same_bits(forwards[i], exchanged[i]))
        found_ = fmt::format("combine({0}, {1}) is {2}, but combine({1}, {0}) is {3}", given_.a[i], given_.b[i],
                             forwards[i], exchanged[i]);
  }

  const Pairs<T> given_ = pairs<T>();
  std::string found_;
  bool is_tried_ = false;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string why_not_reproducible(const Unit& unit, DType accumulator) {
  std::string why;
  try {
    with_element_type(accumulator, [&]<class T>(T) {
      if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) why = Exchange<T>().why_not_reproducible(unit);
    });
  } catch (const Error&) {
    // Without a compiler, or with expressions that do not compile, there is nothing to show.
  }
  return why;
}

}  // namespace hone
