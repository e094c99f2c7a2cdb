// The thread-local variables of an ELF file, which are the shared memory of a kernel for the host device.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hone {

/// The thread-local variables that an object file declares but does not define. Names as the linker sees them, from a
/// 64-bit relocatable ELF file of this machine's byte order; empty when it is not one.
std::vector<std::string> undefined_tls_symbols(std::span<const std::byte> object);

/// A thread-local variable of a shared object.
struct TlsSymbol {
  std::string name;       ///< as the source has it, without the function around it
  std::size_t begin = 0;  ///< in the thread-local segment
};

/// The variable at `offset` in the thread-local segment of a shared object that was not stripped; without a name if
/// there is none.
TlsSymbol tls_symbol_at(std::span<const std::byte> object, std::size_t offset);

}  // namespace hone
