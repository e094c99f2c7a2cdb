#include "runtime/families/spec/spec_verifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/kernel_file.h>

#include "runtime/families/counts.h"
#include "runtime/families/spec/spec_family.h"

namespace hone {
namespace {

using Bytes = std::vector<std::byte>;

/// A prime, so that a period ends within a tile.
constexpr std::int64_t kInputPeriod = 65521;

/// Special values stand so far apart that most results of a stencil have none of them among their inputs, and in short
/// arrays so close that each of the kinds is there.
constexpr std::size_t kLeastSpecialStride = 7, kMostSpecialStride = 997;
constexpr std::size_t kSpecialValues = 6;

/// Odd, so that the special values stand at other places of each tile.
std::size_t special_stride(std::size_t elements) {
  const std::size_t fitting = elements / kSpecialValues;
  return std::clamp(fitting > 0 ? (fitting - 1) | 1 : 1, kLeastSpecialStride, kMostSpecialStride);
}

/// Without a tolerance, floats may differ by so many units in the last place of the largest.
constexpr double kUsualUlps = 32;

/// Extents of a small problem that no tile divides.
constexpr Extents kOdd{37, 19, 5};

/// Awkward, but finite in sum: nothing here overflows where it is added to its neighbours.
template <class T>
T special_value(std::size_t turn, std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random());
  else {
    using Limits = std::numeric_limits<T>;
    const double infinity = Limits::has_infinity ? std::numeric_limits<double>::infinity() : 1;
    const std::array<double, kSpecialValues> values{
        std::nan(""), -0.0, infinity, number_of<double>(Limits::denorm_min()), -infinity, 0.0};
    return element_of<T>(values[turn % values.size()]);
  }
}

Bytes pattern(DType dtype, std::int64_t elements, std::uint64_t seed, bool is_special, std::int64_t bound) {
  return with_element_type(dtype, [&]<class T>(T) {
    std::mt19937_64 random(seed + 1);
    Bytes bytes(static_cast<std::size_t>(elements) * sizeof(T));
    std::size_t special = seed;
    const std::size_t stride = special_stride(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) {
      const std::uint64_t bits = random();
      T value;
      if (bound > 0)
        value = element_of<T>(static_cast<double>(bits % static_cast<std::uint64_t>(bound)));
      else if (is_special && i % stride == stride / 2)
        value = special_value<T>(special++, random);
      else if (info(kDTypeOf<T>).is_floating())
        value = element_of<T>(static_cast<double>(bits >> 40) * 0x1p-23 - 1);
      else if (std::is_same_v<T, bool>)
        value = element_of<T>(static_cast<double>(bits & 1));
      else
        value = element_of<T>(static_cast<double>(bits % (std::is_unsigned_v<T> ? 101 : 201)) -
                               (std::is_unsigned_v<T> ? 0 : 100));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

/// `count` elements of a period that repeats, converted to another dtype.
Bytes expanded(DType from, const Bytes& period, std::int64_t count, DType to) {
  const std::size_t bytes = static_cast<std::size_t>(count) * info(to).size_bytes;
  Bytes result(bytes);
  if (bytes == 0) return result;
  if (from == to) {
    for (std::size_t at = 0; at < bytes; at += period.size())
      std::memcpy(result.data() + at, period.data(), std::min(period.size(), bytes - at));
    return result;
  }
  with_element_type(from, [&]<class From>(From) {
    with_element_type(to, [&]<class To>(To) {
      const std::size_t length = period.size() / sizeof(From);
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        From value;
        std::memcpy(&value, period.data() + i % length * sizeof(From), sizeof(From));
        const To converted = element_of<To>(number_of<double>(value));
        std::memcpy(result.data() + i * sizeof(To), &converted, sizeof(To));
      }
    });
  });
  return result;
}

/// "" if the elements agree, else the first that does not.
template <class T>
std::string difference(std::string_view name, std::span<const T> expected, std::span<const T> found,
                       std::optional<double> tolerance) {
  constexpr bool kIsFloating = info(kDTypeOf<T>).is_floating();
  double largest = 0;
  for (const T value : expected)
    if (const double magnitude = std::fabs(number_of<double>(value)); std::isfinite(magnitude))
      largest = std::max(largest, magnitude);
  const double usual = kIsFloating ? std::ldexp(kUsualUlps, -info(kDTypeOf<T>).digits) : 0;
  const double allowed = tolerance.value_or(usual) * largest;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double right = number_of<double>(expected[i]), value = number_of<double>(found[i]);
    const bool agrees = std::isnan(right) ? std::isnan(value)
                                          : std::memcmp(&expected[i], &found[i], sizeof(T)) == 0 || right == value ||
                                                std::fabs(right - value) <= allowed;
    if (!agrees && wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("{}[{}] is {}, and the reference says {} ({} of {} elements differ by more than {:.3g})", name,
                     first, number_of<double>(found[first]), number_of<double>(expected[first]), wrong,
                     expected.size(), allowed);
}

std::string difference(DType dtype, std::string_view name, const Bytes& expected, const Bytes& found,
                       std::optional<double> tolerance) {
  if (expected == found) return "";
  return with_element_type(dtype, [&]<class T>(T) {
    const auto typed = [](const Bytes& bytes) {
      return std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
    };
    return difference(name, typed(expected), typed(found), tolerance);
  });
}

}  // namespace

std::span<const std::string_view> SpecVerifier::input_kinds(const Problem&) const {
  return family_.parsed().input_kinds;
}

Bytes SpecVerifier::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  const std::vector<KernelArgument>& arguments = family_.spec().arguments;
  std::size_t argument = 0;
  while (!arguments[argument].is_array() || family_.parsed().buffer_of[argument] != static_cast<std::size_t>(buffer))
    ++argument;
  const std::int64_t elements = std::min(family_.elements(problem, argument), kInputPeriod);
  return pattern(arguments[argument].dtype, elements, static_cast<std::uint64_t>(buffer), kind == "special",
                 family_.index_bound(problem, argument));
}

std::vector<Problem> SpecVerifier::verified_problems(const Problem& problem) const {
  std::vector<Problem> problems{problem};
  Problem smaller = problem, odd = problem;
  for (std::size_t axis = 0; axis < family_.extent_names().size(); ++axis) {
    smaller.extents[axis] = std::max<std::int64_t>(0, problem.extents[axis] - 1);
    odd.extents[axis] = std::min(problem.extents[axis], kOdd[axis]);
  }
  problems.push_back(smaller);
  if (odd.extents != problem.extents && odd.extents != smaller.extents) problems.push_back(odd);
  return problems;
}

bool SpecVerifier::has_reference_kernel() const {
  return family_.spec().reference.kind() != KernelReference::Kind::function;
}

std::string SpecVerifier::verify(const Problem& problem, const Candidate& candidate, std::span<const Bytes> patterns,
                                 std::span<const Bytes> outputs) const {
  const KernelSpec& spec = family_.spec();
  const std::vector<KernelReference::Parameter>& parameters = spec.reference.parameters();
  std::vector<Bytes> arrays(spec.arguments.size());
  std::vector<KernelReference::Value> values(spec.arguments.size());
  for (std::size_t i = 0; i < spec.arguments.size(); ++i) {
    const KernelArgument& argument = spec.arguments[i];
    if (!argument.is_array()) {
      values[i].number = family_.number(problem, candidate.policy, i);
      continue;
    }
    const std::int64_t elements = family_.elements(problem, i);
    const DType dtype = parameters[i].dtype;
    arrays[i] = argument.kind == KernelArgument::Kind::out
                    ? Bytes(static_cast<std::size_t>(elements) * info(dtype).size_bytes)
                    : expanded(argument.dtype, patterns[family_.parsed().buffer_of[i]], elements, dtype);
    values[i] = {.data = arrays[i].data(), .elements = static_cast<std::size_t>(elements)};
  }
  try {
    spec.reference.call(values, std::span(problem.extents).first(family_.extent_names().size()));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the reference of the kernel '{}' threw an exception for {}: {}", spec.name,
                            to_string(problem), error.what()));
  }
  std::vector<Bytes> expected;
  for (const std::size_t i : family_.parsed().written_arguments)
    expected.push_back(expanded(parameters[i].dtype, arrays[i], family_.elements(problem, i), spec.arguments[i].dtype));
  return compare(problem, candidate, expected, outputs);
}

std::string SpecVerifier::compare(const Problem&, const Candidate&, std::span<const Bytes> expected,
                                  std::span<const Bytes> outputs) const {
  const KernelSpec& spec = family_.spec();
  for (std::size_t at = 0; const std::size_t i : family_.parsed().written_arguments) {
    const KernelArgument& argument = spec.arguments[i];
    std::string fault = difference(argument.dtype, argument.name, expected[at], outputs[at], spec.tolerance);
    if (!fault.empty()) return fault;
    ++at;
  }
  return "";
}

Unit SpecVerifier::reference_unit(const Problem&) const {
  const KernelReference& reference = family_.spec().reference;
  if (reference.kind() == KernelReference::Kind::default_policy)
    return family_.parsed().unit_of(family_.parsed().default_policy);
  return {.name = fmt::format("the reference of {}", family_.spec().name),
          .source = fmt::format("#line 1 \"{}.reference\"\n{}\n", family_.spec().name, reference.source()),
          .headers = {},
          .entries = global_functions(reference.source())};
}

void SpecVerifier::encode_reference(const Problem& problem, int, std::span<void* const> buffers,
                                    LaunchList& launches) const {
  const Policy& policy = family_.parsed().default_policy;
  if (family_.spec().reference.kind() == KernelReference::Kind::default_policy)
    return family_.encode(problem, {policy, {.max_blocks = Geometry::kMostBlocks}}, buffers, nullptr, launches);
  constexpr std::array<Dim3, 3> kBlocks{Dim3{256, 1, 1}, Dim3{16, 16, 1}, Dim3{8, 8, 4}};
  if (std::ranges::find(problem.extents, 0) != problem.extents.end()) return;
  Launch& launch = launches.add();
  launch.block = kBlocks[family_.extent_names().size() - 1];
  const auto blocks = [&](std::size_t axis, unsigned threads) {
    return static_cast<unsigned>(divide_up(problem.extents[axis], threads));
  };
  launch.grid = {blocks(0, launch.block.x), blocks(1, launch.block.y), blocks(2, launch.block.z)};
  family_.push_arguments(problem, policy, buffers, launch.arguments);
}

}  // namespace hone
