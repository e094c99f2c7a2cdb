#include "tuner/check/check_arguments.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <type_traits>
#include <random>

#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 30;

/// How an element type is written and filled.
struct ElementType {
  std::string_view name;
  std::size_t size_bytes;
  bool is_floating;
  void (*store)(double value, std::byte* to);
  void (*store_integer)(std::int64_t value, std::byte* to);
  bool (*holds)(std::int64_t value) = [](std::int64_t) { return true; };
};

template <class T>
void store_as(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

/// The bits of a binary float with `kMantissa` explicit bits and the exponent range of its 16-bit format, rounded to
/// nearest even.
template <int kMantissa, int kMinExponent, int kMaxExponent>
std::uint16_t small_float_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  constexpr std::uint16_t kInfinity = ((1u << (15 - kMantissa)) - 1) << kMantissa;
  if (std::isnan(value)) return kInfinity | 1u << (kMantissa - 1);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int exponent = std::isinf(magnitude) ? kMaxExponent + 1 : std::max(std::ilogb(magnitude), kMinExponent);
  if (exponent > kMaxExponent) return sign | kInfinity;
  // In units of the last place: 2^kMantissa for normal numbers; a carry runs over into the exponent as it should.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, kMantissa - exponent)));
  return static_cast<std::uint16_t>(sign |
                                    (units + (static_cast<std::uint32_t>(exponent - kMinExponent) << kMantissa)));
}

template <class T>
constexpr ElementType element(std::string_view name, bool is_floating) {
  return {name, sizeof(T), is_floating, [](double value, std::byte* to) { store_as(static_cast<T>(value), to); },
          [](std::int64_t value, std::byte* to) { store_as(static_cast<T>(value), to); },
          [](std::int64_t value) {
            if constexpr (std::is_integral_v<T>) return std::in_range<T>(value);
            else return true;
          }};
}

template <int kMantissa, int kMinExponent, int kMaxExponent>
constexpr ElementType small_float(std::string_view name) {
  constexpr auto bits = small_float_bits<kMantissa, kMinExponent, kMaxExponent>;
  return {name, 2, true, [](double value, std::byte* to) { store_as(bits(value), to); },
          [](std::int64_t value, std::byte* to) { store_as(bits(static_cast<double>(value)), to); }};
}

constexpr std::array kTypes{element<std::int8_t>("i8", false),   element<std::uint8_t>("u8", false),
                            element<std::int16_t>("i16", false), element<std::uint16_t>("u16", false),
                            element<std::int32_t>("i32", false), element<std::uint32_t>("u32", false),
                            element<std::int64_t>("i64", false), element<std::uint64_t>("u64", false),
                            small_float<10, -14, 15>("f16"),     small_float<7, -126, 127>("bf16"),
                            element<float>("f32", true),         element<double>("f64", true)};

[[noreturn]] void reject(std::string_view text, const std::string& why) {
  throw CommandError(ExitCode::usage, fmt::format("'{}' is no kernel argument: {}; write TYPE=VALUE or TYPE[N]=FILL, "
                                                  "like i32=1000 or f32[1000]=random", printable(text), why));
}

const ElementType& type_of(std::string_view text, std::string_view name) {
  for (const ElementType& type : kTypes)
    if (type.name == name) return type;
  reject(text, fmt::format("there is no type '{}' (i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64)", printable(name)));
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Stores `text` as a number of `type`; false when it is none, or beyond its range.
bool store_number(const ElementType& type, std::string_view text, std::byte* to) {
  if (const auto integer = number<std::int64_t>(text)) {
    if (!type.holds(*integer)) return false;
    type.store_integer(*integer, to);
    return true;
  }
  if (const auto large = number<std::uint64_t>(text); large && type.name == "u64") {
    type.store_integer(static_cast<std::int64_t>(*large), to);
    return true;
  }
  const auto real = number<double>(text);
  if (!real || !type.is_floating) return false;
  type.store(*real, to);
  return true;
}

/// Small enough that sums of a few thousand stay exact or nearly so: [−1, 1) for floats, −100 … 100 for integers.
void fill_random(const ElementType& type, std::vector<std::byte>& bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += type.size_bytes) {
    if (type.is_floating) type.store(static_cast<double>(random() >> 11) * 0x1p-52 - 1, &bytes[at]);
    else type.store_integer(static_cast<std::int64_t>(random() % 201) - 100, &bytes[at]);
  }
}

void fill(const ElementType& type, std::string_view how, std::string_view text, std::vector<std::byte>& bytes) {
  constexpr std::string_view kRandom = "random:";
  if (how == "random") return fill_random(type, bytes, 1);
  if (how.starts_with(kRandom)) {
    if (const auto seed = number<std::uint64_t>(how.substr(kRandom.size()))) return fill_random(type, bytes, *seed);
  }
  for (std::size_t at = 0; at < bytes.size(); at += type.size_bytes) {
    if (how == "iota") type.store_integer(static_cast<std::int64_t>(at / type.size_bytes), &bytes[at]);
    else if (how == "nan" && type.is_floating) type.store(std::numeric_limits<double>::quiet_NaN(), &bytes[at]);
    else if (!store_number(type, how, &bytes[at]))
      reject(text, fmt::format("'{}' is no way to fill {} (a number, iota, random, random:SEED; nan for floats)",
                               printable(how), type.name));
  }
}

}  // namespace

CheckArgument parse_check_argument(std::string_view text) {
  CheckArgument argument;
  argument.text = text;
  const std::size_t equals = text.find('=');
  std::string_view left = text.substr(0, equals);
  std::string_view right = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const std::size_t bracket = left.find('[');
  const ElementType& type = type_of(text, left.substr(0, bracket));
  if (bracket == std::string_view::npos) {
    argument.bytes.resize(type.size_bytes);
    if (!store_number(type, right, argument.bytes.data()))
      reject(text, fmt::format("'{}' is no {}", printable(right), type.name));
    return argument;
  }
  argument.is_buffer = true;
  if (!left.ends_with(']')) reject(text, "the ']' after the number of elements is missing");
  const std::int64_t count = parse_size(left.substr(bracket + 1, left.size() - bracket - 2));
  if (count > kMaxElements) reject(text, "more than 2^30 elements");
  if (right.ends_with(",any")) {
    argument.compared = false;
    right.remove_suffix(4);
  }
  argument.bytes.resize(static_cast<std::size_t>(count) * type.size_bytes);
  fill(type, right.empty() ? "0" : right, text, argument.bytes);
  return argument;
}

void push_argument(Arguments& arguments, const CheckArgument& argument, void* memory) {
  if (argument.is_buffer) return arguments.push(memory);
  const auto push_as = [&]<class Bits>(Bits bits) {
    std::memcpy(&bits, argument.bytes.data(), sizeof(Bits));
    arguments.push(bits);
  };
  switch (argument.bytes.size()) {
    case 1: return push_as(std::uint8_t());
    case 2: return push_as(std::uint16_t());
    case 4: return push_as(std::uint32_t());
    default: return push_as(std::uint64_t());
  }
}

}  // namespace hone::tuner
