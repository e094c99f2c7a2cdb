#include "tuner/text/quantities.h"

#include <fmt/core.h>

#include <hone/error.h>
#include <hone/sdk/count_text.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

struct TimeUnit {
  std::string_view name;
  double milliseconds;
};

constexpr std::array<TimeUnit, 5> kTimeUnits{
    {{"ms", 1}, {"s", 1000}, {"min", 60'000}, {"m", 60'000}, {"h", 3'600'000}}};
constexpr double kMaxDurationMs = 24 * 3'600'000.0;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void refuse_size(std::string_view text, std::string_view why) {
  throw CommandError(
      ExitCode::usage,
      fmt::format("'{}' is not a size: {}. Sizes are counts of elements, such as 1000, 1e6, 64Ki, 1Mi or "
                  "2^20; 2^10..2^24 means every octave between",
                  text, why));
}

}  // namespace

std::int64_t parse_size(std::string_view text) {
  std::optional<std::int64_t> size;
  try {
    size = parse_count(text);
  } catch (const Error& error) {
    refuse_size(text, error.what());
  }
  if (!size) refuse_size(text, "it is beyond 2^53 elements, more than any device holds");
  if (*size < 1) refuse_size(text, "the least is 1 element");
  return *size;
}

std::optional<double> parse_number(std::string_view text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const bool is_negative = text.starts_with('-');
  if (has_sign) text.remove_prefix(1);
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_within = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (text[i] != '_' || !is_within) digits.push_back(text[i]);
  }
  if (digits.starts_with('-')) return std::nullopt;
  double value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value,
                                            is_hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (error != std::errc{} || end != last) return std::nullopt;
  return is_negative ? -value : value;
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
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> kAgeUnits{
      {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86'400}, {"w", 604'800}, {"y", 31'536'000}}};
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, seconds] : kAgeUnits)
    if (error == std::errc{} && unit == name && number >= 0 && number <= kMaxSize / seconds) return number * seconds;
  throw CommandError(ExitCode::usage,
                     fmt::format("'{}' is not an age; ages are a whole number and s, min, h, d, w or y, such as 12h "
                                 "or 30d",
                                 text));
}

std::int64_t parse_bytes(std::string_view text) {
  if (const std::optional<std::int64_t> bytes = parse_byte_count(text)) return *bytes;
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
