// undefined_tls_symbols(): the thread-local variables that an object file declares but does not define.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hone {

/// Names as the linker sees them, from a 64-bit relocatable ELF file of this machine's byte order; empty when it is
/// not one.
std::vector<std::string> undefined_tls_symbols(std::span<const std::byte> object);

}  // namespace hone
