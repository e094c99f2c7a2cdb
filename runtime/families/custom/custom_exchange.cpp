#include "runtime/families/custom/custom_exchange.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/host_check.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/counts.h"

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

/// Runs the only kernel of a unit once on several elements, and looks for the first that breaks a law.
struct LawTrial {
  const Unit& unit;
  std::vector<CheckBuffer> in, out;
  std::size_t count;

  /// Says what is wrong with the results of the elements from `begin` to `end`; "" if nothing is.
  std::function<std::string(const HostRun&, std::size_t begin, std::size_t end)> find;
};

class LawTrialRun {
 public:
  explicit LawTrialRun(const LawTrial& trial) : trial_(trial) {}

  /// What was found; nullopt if the kernel did not end in time.
  std::optional<std::string> run() {
    HostCheck check{.unit = trial_.unit,
                    .buffers = trial_.in,
                    .run = {},
                    .orders = {{}},
                    .looks_for_lost_updates = false,
                    .deadline = kPatience};
    check.buffers.insert(check.buffers.end(), trial_.out.begin(), trial_.out.end());
    // Called again for the places of buffers, which is of no interest here.
    check.run = [&](const HostRun& run) {
      if (!std::exchange(is_tried_, true)) try_elements(run, 0, trial_.count);
    };
    return check_on_host(check).ran_too_long ? std::nullopt : std::optional(found_);
  }

 private:
  /// An element that ends the kernel, as by a division by zero, hides no other one: both halves are tried without it.
  void try_elements(const HostRun& run, std::size_t begin, std::size_t end) {
    const auto started = std::chrono::steady_clock::now();
    try {
      launch(run, begin, end - begin);
      found_ = trial_.find(run, begin, end);
    } catch (const Error&) {
      if (std::chrono::steady_clock::now() - started > kPatience) throw;  // it did not end
      if (end - begin == 1) return;
      const std::size_t middle = begin + (end - begin) / 2;
      try_elements(run, begin, middle);
      if (found_.empty()) try_elements(run, middle, end);
    }
  }

  void launch(const HostRun& run, std::size_t begin, std::size_t count) const {
    ReduceArguments arguments{.in = {}, .n = count, .workspace = nullptr, .out = {}, .partials = 0};
    std::size_t buffer = 0;
    const auto part_of = [&](const CheckBuffer& whole) {
      return run.buffer<std::byte>(buffer++) + begin * (whole.initial.size() / trial_.count);
    };
    for (std::size_t i = 0; i < trial_.in.size(); ++i) arguments.in[i] = part_of(trial_.in[i]);
    for (std::size_t i = 0; i < trial_.out.size(); ++i) arguments.out[i] = part_of(trial_.out[i]);
    Launch launch;
    launch.block.x = kSerialThreads;
    launch.arguments.push(arguments);
    run.launch(launch);
  }

  const LawTrial& trial_;
  std::string found_;
  bool is_tried_ = false;
};

template <class T>
std::string exchange_fault(const Unit& unit) {
  const Pairs<T> given = pairs<T>();
  const std::vector<T> results(given.a.size());
  const LawTrial trial{.unit = unit,
                       .in = {CheckBuffer::of("a", given.a), CheckBuffer::of("b", given.b)},
                       .out = {CheckBuffer::of("there", results), CheckBuffer::of("back", results)},
                       .count = given.a.size(),
                       .find = [&](const HostRun& run, std::size_t begin, std::size_t end) -> std::string {
                         const T *const forwards = run.buffer<T>(2), *const exchanged = run.buffer<T>(3);
                         for (std::size_t i = begin; i < end; ++i)
                           if (!has_same_bits(forwards[i], exchanged[i]))
                             return fmt::format("combine({0}, {1}) is {2}, but combine({1}, {0}) is {3}", given.a[i],
                                                given.b[i], forwards[i], exchanged[i]);
                         return "";
                       }};
  const std::optional<std::string> found = LawTrialRun(trial).run();
  if (!found)
    return fmt::format("combine() was stopped on the host device, where it did not end within {} s for two elements",
                       kPatience.count());
  return found->empty() ? "" : fmt::format("exchanged operands must give the same bits, and {}", *found);
}

/// Elements at which an identity shows that it is none. Not every type holds all of them as they are.
template <class Element>
std::vector<Element> elements_around_zero() {
  using Limits = std::numeric_limits<Element>;
  std::vector<Element> elements;
  const auto append = [&](std::initializer_list<double> values) {
    for (const double value : values) elements.push_back(element_of<Element>(value));
  };
  append({1, 0, 2, 3, 7, 100});
  if constexpr (info(kDTypeOf<Element>).is_floating()) {
    append({-1, -0.0, 0.1, -0.1, 1.5, -60000, 60000, 0x1p-14, -0x1p-14});
  } else {
    elements.push_back(Limits::max());
    elements.push_back(Limits::lowest());
    if constexpr (Limits::is_signed) append({-1, -2, -100});
  }
  return elements;
}

/// `numbers` are what `elements` hold.
template <class Acc>
std::string identity_fault_of(const Unit& unit, const CheckBuffer& elements, std::span<const double> numbers,
                              double relative_tolerance) {
  const std::vector<Acc> results(numbers.size());
  const auto agree = [&](Acc a, Acc b) {
    const auto left = static_cast<long double>(a), right = static_cast<long double>(b);
    return a == b || (std::isnan(left) && std::isnan(right)) ||
           std::fabs(left - right) <=
               static_cast<long double>(relative_tolerance) * std::max(std::fabs(left), std::fabs(right));
  };
  const auto find = [&](const HostRun& run, std::size_t begin, std::size_t end) -> std::string {
    const Acc *const x = run.buffer<Acc>(1), *const left = run.buffer<Acc>(2), *const right = run.buffer<Acc>(3);
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_left = !agree(x[i], left[i]);
      if (!is_left && agree(x[i], right[i])) continue;
      return fmt::format("the element {} is mapped to {}, and {} is {}", numbers[i], x[i],
                         is_left ? "combine(identity, x)" : "combine(x, identity)", is_left ? left[i] : right[i]);
    }
    return "";
  };
  const LawTrial trial{.unit = unit,
                       .in = {elements},
                       .out = {CheckBuffer::of("x", results), CheckBuffer::of("left", results),
                               CheckBuffer::of("right", results)},
                       .count = numbers.size(),
                       .find = find};
  return LawTrialRun(trial).run().value_or("");
}

}  // namespace

std::string why_not_reproducible(const Unit& unit, DType accumulator) {
  std::string why;
  try {
    with_element_type(accumulator, [&]<class T>(T) {
      if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) why = exchange_fault<T>(unit);
    });
  } catch (const Error&) {
    // Without a compiler, or with expressions that do not compile, there is nothing to show.
  }
  return why;
}

std::string identity_fault(const Unit& unit, DType dtype, DType accumulator, double relative_tolerance) {
  std::string fault;
  try {
    CheckBuffer elements;
    std::vector<double> numbers;
    with_element_type(dtype, [&]<class Element>(Element) {
      if constexpr (!std::is_same_v<Element, bool>) {
        const std::vector<Element> given = elements_around_zero<Element>();
        elements = CheckBuffer::of("in", given);
        for (const Element& element : given) numbers.push_back(number_of<double>(element));
      }
    });
    if (numbers.empty()) return "";
    with_element_type(accumulator, [&]<class Acc>(Acc) {
      if constexpr (std::is_arithmetic_v<Acc> && sizeof(Acc) >= 4)
        fault = identity_fault_of<Acc>(unit, elements, numbers, relative_tolerance);
    });
  } catch (const Error&) {
    // Without a compiler, or with expressions that do not compile, there is nothing to show.
  }
  return fault;
}

}  // namespace hone
