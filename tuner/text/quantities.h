// Sizes, durations and their spellings: what people type, and what they read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hone/sdk/count_text.h>

namespace hone::tuner {

/// Elements of the largest problem that can be asked for.
inline constexpr std::int64_t kMaxSize = kMostCount;

/// A count of elements: "1000", "1_000_000", "1e6", "1.5e6", "2^20", or a number with k M G T (powers of 1000) or
/// Ki Mi Gi Ti (powers of 1024), such as "1.5M", where that is a whole number. Throws CommandError(usage) for anything
/// else and outside 1 … kMaxSize.
std::int64_t parse_size(std::string_view text);

/// A number of any size: "-2.5", "1e6", "1_000", "0x1.8p3", "inf" or "nan", with or without a sign; nullopt for
/// anything else, and for what is beyond the range of a double.
std::optional<double> parse_number(std::string_view text);

/// A time: a decimal number and one of ms, s, min, m, h; "500ms", "1.5s". At least 1 ms and at most 24 h. Throws
/// CommandError(usage).
std::chrono::milliseconds parse_duration(std::string_view text);

/// An age in seconds: a whole number and one of s, min, h, d (days), w (weeks), y (365 days); "12h", "30d". Throws
/// CommandError(usage).
std::int64_t parse_age(std::string_view text);

/// A number of bytes, 0 or more: as parse_size() has numbers, with or without a B behind: "64Mi", "64MiB", "1e9".
/// Throws CommandError(usage).
std::int64_t parse_bytes(std::string_view text);

/// The number of a winner, from 1 on, as `hone inspect` shows it. Throws CommandError(usage).
std::int64_t parse_winner_id(std::string_view text);

/// "2^20" for a power of two from 2^8 on, else the plain number.
std::string format_size(std::int64_t size);

/// "50 MiB", "79.6 GiB"; binary units, three significant digits at least.
std::string format_bytes(std::int64_t bytes);

/// "1 winner", "2 winners", "3 binaries".
std::string count_text(std::int64_t count, std::string_view singular);

/// A time in microseconds without its unit, three to four significant digits: "2.68", "26.60", "345.8", "1379".
std::string format_us(double microseconds);

/// "0.4 s", "12 s", "3 min 20 s", "2 h 5 min".
std::string format_duration(std::chrono::milliseconds duration);

/// "3 s", "5 min", "2 h", "4 d": how long ago, one unit. Negative ages (a clock was set back) are "0 s".
std::string format_age(std::int64_t seconds);

}  // namespace hone::tuner
