// source_line(): from an address in compiled code to the line it comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hone {

/// "scale.cu:4" for an address in a shared object that has line numbers (-g1), by its file's own addresses. "" when
/// there is no addr2line on PATH, which binutils bring, or it does not know. Never throws.
std::string source_line(const std::vector<std::byte>& shared_object, std::uint64_t address) noexcept;

}  // namespace hone
