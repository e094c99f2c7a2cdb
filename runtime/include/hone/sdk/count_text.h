// parse_count() and parse_byte_count(): numbers of elements and of bytes, as people type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

/// No count is larger: 2^53, beyond what any device holds, and far enough below 2^63 that byte counts cannot overflow.
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 53;

/// "1000", "1_000_000", "1e6", "1.5e6", "2^20", or a number with k M G T (powers of 1000) or Ki Mi Gi Ti (powers of
/// 1024), such as "1.5M", where that is a whole number; 0 is one. nullopt beyond kMostCount. Throws
/// Error(invalid_argument) with the reason alone ("it is negative") for any other text.
std::optional<std::int64_t> parse_count(std::string_view text);

/// As parse_count(), with or without a B behind: "64Mi", "64MiB", "1e9". nullopt for all that is no such number.
std::optional<std::int64_t> parse_byte_count(std::string_view text);

}  // namespace hone
