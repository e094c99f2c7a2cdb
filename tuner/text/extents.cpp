#include "tuner/text/extents.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {

unsigned parse_unsigned(std::string_view option, std::string_view text) {
  unsigned value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc() && rest == text.data() + text.size()) return value;
  throw CommandError(ExitCode::usage, fmt::format("{}: '{}' is no number of up to 32 bits", option, printable(text)));
}

unsigned parse_smem_bytes(std::string_view option, std::string_view text) {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  try {
    bytes = parse_bytes(text);
  } catch (const CommandError& error) {
    throw CommandError(error.code(), fmt::format("{}: {}", option, error.what()));
  }
  if (bytes <= std::numeric_limits<unsigned>::max()) return static_cast<unsigned>(bytes);
  throw CommandError(ExitCode::usage, fmt::format("{}: no block has {}", option, format_bytes(bytes)));
}

Dim3 parse_extents(std::string_view option, std::string_view text) {
  Dim3 extents;
  unsigned* const parts[] = {&extents.x, &extents.y, &extents.z};
  for (unsigned* part : parts) {
    const std::size_t separator = text.find_first_of(",x");
    *part = parse_unsigned(option, text.substr(0, separator));
    if (separator == std::string_view::npos) return extents;
    text.remove_prefix(separator + 1);
  }
  throw CommandError(ExitCode::usage, fmt::format("{}: more than three extents", option));
}

Dim3 parse_block(std::string_view option, std::string_view text) {
  const Dim3 block = parse_extents(option, text);
  const auto& [x, y, z] = block;
  if (const auto threads = std::uint64_t{x} * y * z; threads < 1 || x > 1024 || y > 1024 || z > 64 || threads > 1024)
    throw CommandError(ExitCode::usage, fmt::format("{}: {}×{}×{} threads; a block has 1 to 1024, and at most 64 in z",
                                                    option, x, y, z));
  return block;
}

}  // namespace hone::tuner
