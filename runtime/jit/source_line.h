// source_lines(): from addresses in compiled code to the lines they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hone {

/// "scale.cu:4" for each address in a shared object that has line numbers (-g1), by its file's own addresses; where
/// code of the prelude was inlined, the line that calls it. "" where there is no addr2line on PATH, which binutils
/// bring, or it does not know. Never throws.
std::vector<std::string> source_lines(const std::vector<std::byte>& shared_object,
                                      const std::vector<std::uint64_t>& addresses) noexcept;

}  // namespace hone
