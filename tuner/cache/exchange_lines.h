// The lines of an export: JSON, one object a line, by the grammar in docs/cache.md.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "cache/maintenance/entry.h"

namespace hone::tuner {

/// Raise it with every change that an earlier reader would not understand. Earlier formats are read, too.
inline constexpr std::uint64_t kExchangeFormat = 5;

/// No line may be longer: a cubin of ours has some kilobytes, and a tuning of a thousand trials some hundreds.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

struct HeaderLine {
  bool binaries = true;
};

struct BinaryLine {
  std::string digest;  ///< that entries refer to it by
  cache::BinaryRecord binary;
};

struct EndLine {
  std::int64_t binaries = 0;
  std::int64_t winners = 0;
};

using ExchangeLine = std::variant<HeaderLine, BinaryLine, cache::Entry, EndLine>;

/// Without the end of the line. nullopt where a text out of the file is no UTF-8, and so has no place in JSON.
std::optional<std::string> to_line(const ExchangeLine& line);

/// Says what is wrong with a line, as the rest of a sentence that begins with its number.
class LineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Strict: every field there, of its type and in its range, none twice and none besides; the digest must hold. Throws
/// LineError.
ExchangeLine parse_line(std::string_view line);

}  // namespace hone::tuner
