#include <hone/verifier.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <type_traits>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A prime, so that a period ends within a tile.
constexpr std::int64_t kInputPeriod = 65521;

[[noreturn]] void miss_method(const Problem& problem, std::string_view method) {
  throw Error(ErrorCode::unsupported, fmt::format("the Verifier of the kernel family {} does not implement {}(), so "
                                                  "results cannot be verified",
                                                  problem.family->name(), method));
}

}  // namespace

std::span<const std::string_view> Verifier::input_kinds(const Problem&) const {
  static constexpr std::array<std::string_view, 1> kKinds{"uniform"};
  return kKinds;
}

Problem smaller(const Problem& problem, std::size_t extent, std::int64_t by, const Pitches& pitches) {
  Problem other = problem;
  other.extents[extent] = std::max<std::int64_t>(0, problem.extents[extent] - by);
  other.pitches = pitches;
  return other;
}

std::span<const std::string_view> kept_kinds(std::vector<std::string_view> kinds) {
  static std::mutex mutex;
  static auto& lists = never_destroyed<std::set<std::vector<std::string_view>>>();
  const std::scoped_lock lock(mutex);
  return *lists.insert(std::move(kinds)).first;
}

std::vector<std::byte> random_pattern(DType dtype, std::int64_t elements, std::uint64_t seed, float lowest,
                                      float highest) {
  return with_element_type(dtype, [&]<class T>(T) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    std::vector<Stored> values(static_cast<std::size_t>(elements));
    std::mt19937_64 random(seed);
    for (Stored& value : values) {
      const std::uint64_t bits = random();
      if constexpr (info(kDTypeOf<T>).is_floating())
        value = static_cast<Stored>(lowest + static_cast<float>(bits >> 41) * 0x1p-23f * (highest - lowest));
      else
        value = static_cast<Stored>(std::is_same_v<T, bool> ? bits & 1 : bits);
    }
    return bytes_of(values);
  });
}

std::vector<std::byte> float_pattern(DType dtype, std::int64_t elements, int buffer, std::string_view kind) {
  const bool is_half = dtype == DType::f16, is_double = dtype == DType::f64;
  const double largest = is_half ? 65504 : is_double ? std::numeric_limits<double>::max() : 0x1.fep127;  // of bf16
  const double smallest = is_half ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-133 : is_double ? 0x1p-1074 : 0x1p-149;
  std::vector<double> values(static_cast<std::size_t>(std::min(elements, kInputPeriod)));
  std::mt19937_64 random(values.size() + static_cast<std::size_t>(buffer));
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (double& value : values) {
    value = uniform(random) * (kind != "wide" ? 4 : is_double ? 1000 : 150);
    if (kind == "huge") value = std::copysign(largest, value) * (random() % 2 == 0 ? 1 : 0.999);
    if (kind == "subnormal") value = std::round(value * 50) * smallest;
    if (kind == "zeros") value = std::copysign(0, value);
    if (kind == "all_negative_infinity" || (kind == "masked" && random() % 3 == 0)) value = -kInfinity;
  }
  if (!values.empty() && kind == "nan") values.back() = std::nan("");
  if (!values.empty() && kind == "infinity") values.back() = kInfinity;
  return with_element_type(dtype, [&]<class T>(T) {
    std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>> stored;
    for (const double value : values) stored.push_back(element_of<T>(value));
    return bytes_of(stored);
  });
}

std::vector<ElementRange> spread_runs(std::int64_t count, std::int64_t length, std::int64_t runs,
                                      std::vector<std::int64_t> starts) {
  if (count == 0) return {};
  if (count <= length * runs) return {{.first = 0, .count = count}};
  starts.insert(starts.end(), {0, count - length});
  std::mt19937_64 random(static_cast<std::uint64_t>(count));
  while (static_cast<std::int64_t>(starts.size()) < runs)
    starts.push_back(std::uniform_int_distribution<std::int64_t>(0, count - length)(random));
  std::sort(starts.begin(), starts.end());
  std::vector<ElementRange> parts;
  std::int64_t end = 0;
  for (const std::int64_t start : starts) {
    const std::int64_t first = std::max(std::min(start, count - length), end), last = std::min(start + length, count);
    if (first < last) parts.push_back({.first = first, .count = last - first});
    end = std::max(end, last);
  }
  return parts;
}

std::vector<ElementRange> row_parts(std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
  constexpr std::int64_t kElements = 1 << 15;  // to compute, of all rows together
  constexpr std::int64_t kPiece = 1024;        // to compare, at the beginning and end of a row and in its middle
  if (rows == 0 || columns == 0) return {};
  const std::int64_t run = at_least_one(kPiece / columns);  // short rows side by side: each part is a copy
  const std::int64_t runs = std::max<std::int64_t>(3, kElements / columns / run);

  std::vector<ElementRange> parts;
  const auto add = [&](std::int64_t first, std::int64_t length) {
    if (!parts.empty() && parts.back().first + parts.back().count == first)
      parts.back().count += length;
    else
      parts.push_back({first, length});
  };
  for (const ElementRange& chosen : spread_runs(rows, run, runs)) {
    for (std::int64_t row = chosen.first; row < chosen.first + chosen.count; ++row) {
      const std::int64_t first = row * pitch;
      if (columns <= 3 * kPiece) {
        add(first, columns);
        continue;
      }
      for (const std::int64_t piece : {std::int64_t{0}, columns / 2, columns - kPiece}) add(first + piece, kPiece);
    }
  }
  return parts;
}

std::vector<std::byte> Verifier::input_pattern(const Problem& problem, int buffer, std::string_view) const {
  const BufferSpec spec = problem.family->buffers(problem)[static_cast<std::size_t>(buffer)];
  return random_pattern(spec.dtype, std::min(spec.elements, kInputPeriod), static_cast<std::uint64_t>(buffer), -1, 1);
}

std::vector<Problem> Verifier::verified_problems(const Problem& problem) const {
  return {problem, smaller(problem, 0)};
}

std::vector<ElementRange> Verifier::verified_parts(const Problem& problem, int buffer) const {
  return {{.first = 0, .count = problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements}};
}

std::string Verifier::verify(const Problem& problem, const Candidate&, ArrayBytes, ArrayBytes) const {
  miss_method(problem, "verify");
}

Unit Verifier::reference_unit(const Problem& problem) const { miss_method(problem, "reference_unit"); }

void Verifier::encode_reference(const Problem& problem, int, std::span<void* const>, LaunchList&) const {
  miss_method(problem, "encode_reference");
}

std::string Verifier::compare(const Problem& problem, const Candidate&, ArrayBytes, ArrayBytes) const {
  miss_method(problem, "compare");
}

std::vector<Problem> Verifier::order_problems(const Problem& problem) const { miss_method(problem, "order_problems"); }

std::string Verifier::compare_orders(const Problem& problem, ArrayBytes, ArrayBytes) const {
  miss_method(problem, "compare_orders");
}

}  // namespace hone
