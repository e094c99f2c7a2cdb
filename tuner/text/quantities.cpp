#include "tuner/text/quantities.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

struct SizeUnit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<SizeUnit, 9> kSizeUnits{{{"k", 1000},
                                              {"K", 1000},
                                              {"M", 1'000'000},
                                              {"G", 1'000'000'000},
                                              {"T", 1'000'000'000'000},
                                              {"Ki", std::int64_t{1} << 10},
                                              {"Mi", std::int64_t{1} << 20},
                                              {"Gi", std::int64_t{1} << 30},
                                              {"Ti", std::int64_t{1} << 40}}};

struct TimeUnit {
  std::string_view name;
  double milliseconds;
};

constexpr std::array<TimeUnit, 5> kTimeUnits{
    {{"ms", 1}, {"s", 1000}, {"min", 60'000}, {"m", 60'000}, {"h", 3'600'000}}};
constexpr double kMaxDurationMs = 24 * 3'600'000.0;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Splits "64Ki" after its digits; underscores between digits are dropped.
std::pair<std::string, std::string_view> split_number(std::string_view text) {
  std::string digits;
  std::size_t end = 0;
  for (; end < text.size() && (is_digit(text[end]) || (text[end] == '_' && end > 0)); ++end) {
    if (text[end] != '_') digits.push_back(text[end]);
  }
  return {digits, text.substr(end)};
}

std::optional<std::int64_t> parse_integer(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// a·b, or nullopt past kMaxSize.
std::optional<std::int64_t> multiply(std::optional<std::int64_t> a, std::int64_t b) {
  if (!a || (b != 0 && *a > kMaxSize / b)) return std::nullopt;
  return *a * b;
}

std::optional<std::int64_t> multiply_by_power(std::optional<std::int64_t> value, std::int64_t base,
                                              std::int64_t exponent) {
  if (base <= 1) return base == 1 ? value : multiply(value, exponent == 0 ? 1 : 0);
  for (; exponent > 0 && value && *value != 0; --exponent) value = multiply(value, base);
  return value;
}

[[noreturn]] void refuse_size(std::string_view text, std::string_view why) {
  throw CommandError(
      ExitCode::usage,
      fmt::format("'{}' is not a size: {}. Sizes are counts of elements, such as 1000, 1e6, 64Ki, 1Mi or "
                  "2^20; 2^10..2^24 means every octave between",
                  text, why));
}

/// Returns what the unit behind the number of a size stands for.
std::int64_t unit_factor(std::string_view text, std::string_view name) {
  for (const SizeUnit& unit : kSizeUnits)
    if (unit.name == name) return unit.factor;
  refuse_size(text, fmt::format("'{}' is no unit that is known here", name));
}

/// "1.5e6" and "1.5M": `whole`, a point and `behind`. Throws where that is no whole number.
std::optional<std::int64_t> evaluate_decimal(std::string_view text, const std::string& whole, std::string_view behind) {
  auto [fraction, rest] = split_number(behind);
  while (fraction.ends_with('0')) fraction.pop_back();
  std::optional<std::int64_t> factor = 1;
  if (rest.starts_with('e') || rest.starts_with('E')) {
    const std::optional<std::int64_t> exponent = parse_integer(rest.substr(1));
    if (!exponent || *exponent < 0) refuse_size(text, "its exponent is not a number");
    factor = multiply_by_power(1, 10, *exponent);
  } else if (!rest.empty()) {
    factor = unit_factor(text, rest);
  }
  std::optional<std::int64_t> scale = multiply_by_power(1, 10, static_cast<std::int64_t>(fraction.size()));
  std::optional<std::int64_t> scaled = parse_integer(whole + fraction);
  if (!factor || !scale || !scaled) return std::nullopt;
  for (std::int64_t* const part : {&*scaled, &*factor}) {
    const std::int64_t common = std::gcd(*part, *scale);
    *part /= common;
    *scale /= common;
  }
  if (*scale != 1) refuse_size(text, "it is no whole number");
  return multiply(scaled, *factor);
}

/// The value of a well-formed size, nullopt when it is too large. Throws when it is not well formed.
std::optional<std::int64_t> evaluate_size(std::string_view text) {
  if (text.starts_with('-')) refuse_size(text, "it is negative");
  const auto [digits, rest] = split_number(text);
  if (digits.empty()) refuse_size(text, text.empty() ? "it is empty" : "it does not begin with a number");
  if (rest.starts_with('.')) return evaluate_decimal(text, digits, rest.substr(1));
  const std::optional<std::int64_t> number = parse_integer(digits);
  if (rest.empty()) return number;
  if (rest.front() == '^' || rest.front() == 'e' || rest.front() == 'E') {
    const std::optional<std::int64_t> exponent = parse_integer(rest.substr(1));
    if (rest.size() < 2 || !std::all_of(rest.begin() + 1, rest.end(), is_digit)) {
      refuse_size(text, "its exponent is not a number");
    }
    if (!exponent || !number) return std::nullopt;
    return rest.front() == '^' ? multiply_by_power(1, *number, *exponent) : multiply_by_power(number, 10, *exponent);
  }
  return multiply(number, unit_factor(text, rest));
}

}  // namespace

std::int64_t parse_size(std::string_view text) {
  const std::optional<std::int64_t> size = evaluate_size(text);
  if (!size || *size > kMaxSize) refuse_size(text, "it is beyond 2^53 elements, more than any device holds");
  if (*size < 1)
    refuse_size(text, "there is nothing to tune below 1 element (an x stands between extents: there are no hexadecimal "
                      "sizes)");
  return *size;
}

std::chrono::milliseconds parse_duration(std::string_view text) {
  constexpr std::string_view kHelp = "Durations are a number and a unit, such as 500ms, 2s, 1.5s, 10min or 1h";
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit_text = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto* unit =
      std::find_if(kTimeUnits.begin(), kTimeUnits.end(), [&](const TimeUnit& u) { return u.name == unit_text; });
  if (error != std::errc{} || unit == kTimeUnits.end() || !std::isfinite(value)) {
    throw CommandError(ExitCode::usage, fmt::format("'{}' is not a duration. {}", text, kHelp));
  }
  const double milliseconds = value * unit->milliseconds;
  if (milliseconds < 1 || milliseconds > kMaxDurationMs) {
    throw CommandError(ExitCode::usage, fmt::format("the duration '{}' is outside 1ms … 24h. {}", text, kHelp));
  }
  return std::chrono::milliseconds{std::llround(milliseconds)};
}

std::int64_t parse_age(std::string_view text) {
  constexpr std::array<SizeUnit, 6> kAgeUnits{
      {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86'400}, {"w", 604'800}, {"y", 31'536'000}}};
  const auto [digits, rest] = split_number(text);
  const auto* unit =
      std::find_if(kAgeUnits.begin(), kAgeUnits.end(), [rest = rest](const SizeUnit& u) { return u.name == rest; });
  std::optional<std::int64_t> seconds;
  if (unit != kAgeUnits.end()) seconds = multiply(parse_integer(digits), unit->factor);
  if (seconds) return *seconds;
  throw CommandError(ExitCode::usage,
                     fmt::format("'{}' is not an age; ages are a whole number and s, min, h, d, w or y, such as 12h "
                                 "or 30d",
                                 text));
}

std::int64_t parse_bytes(std::string_view text) {
  std::string_view number = text;
  if (number.ends_with('B')) number.remove_suffix(1);
  try {
    if (const std::optional<std::int64_t> bytes = evaluate_size(number)) return *bytes;
  } catch (const CommandError&) {
    // It speaks of elements.
  }
  throw CommandError(ExitCode::usage,
                     fmt::format("'{}' is not a number of bytes; such are 1000000, 64Mi, 64MiB and 1Gi", text));
}

std::int64_t parse_winner_id(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size() || id < 1)
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' is no winner's id; ids are the numbers in the first column of: hone inspect; "
                                   "a family is named by --family",
                                   printable(text)));
  return id;
}

std::string format_size(std::int64_t size) {
  const auto bits = static_cast<std::uint64_t>(size);
  if (size >= 256 && std::has_single_bit(bits)) return fmt::format("2^{}", std::countr_zero(bits));
  return fmt::format("{}", size);
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  if (value == std::floor(value) || value >= 100) return fmt::format("{:.0f} {}", value, kUnits[unit]);
  return fmt::format("{:.{}f} {}", value, value >= 10 ? 1 : 2, kUnits[unit]);
}

std::string count_text(std::int64_t count, std::string_view singular) {
  if (count == 1) return fmt::format("1 {}", singular);
  const bool ends_in_y = singular.ends_with('y');
  return fmt::format("{} {}{}", count, ends_in_y ? singular.substr(0, singular.size() - 1) : singular,
                     ends_in_y ? "ies" : "s");
}

std::string format_us(double microseconds) {
  return fmt::format("{:.{}f}", microseconds, microseconds < 100 ? 2 : microseconds < 1000 ? 1 : 0);
}

std::string format_duration(std::chrono::milliseconds duration) {
  const std::int64_t ms = std::max<std::int64_t>(duration.count(), 0);
  if (ms < 9950) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  const std::int64_t seconds = (ms + 500) / 1000;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string format_age(std::int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / (24 * 3600));
}

}  // namespace hone::tuner
