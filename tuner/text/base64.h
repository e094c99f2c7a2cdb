// Base64 of RFC 4648, section 4.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

std::string base64(std::span<const std::byte> bytes);

/// nullopt for anything that base64() does not write: other characters, blanks, missing padding, stray bits.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace hone::tuner
