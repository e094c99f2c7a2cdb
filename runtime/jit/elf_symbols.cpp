#include "runtime/jit/elf_symbols.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace hone {
namespace {

/// The T at `offset`, if it lies within the file.
template <class T>
std::optional<T> read_at(std::span<const std::byte> file, std::size_t offset) {
  if (offset > file.size() || sizeof(T) > file.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::optional<Elf64_Shdr> section_at(std::span<const std::byte> file, const Elf64_Ehdr& header, std::size_t index) {
  return read_at<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
}

std::string string_at(std::span<const std::byte> file, const Elf64_Shdr& strings, std::size_t offset) {
  std::string text;
  for (std::size_t at = strings.sh_offset + offset; at < file.size() && file[at] != std::byte{0}; ++at) {
    text += static_cast<char>(file[at]);
  }
  return text;
}

}  // namespace

std::vector<std::string> undefined_tls_symbols(std::span<const std::byte> object) {
  std::vector<std::string> names;
  const auto header = read_at<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return names;
  for (std::size_t s = 0; s < header->e_shnum; ++s) {
    const auto section = section_at(object, *header, s);
    if (!section || section->sh_type != SHT_SYMTAB) continue;
    const auto strings = section_at(object, *header, section->sh_link);
    if (!strings) continue;
    for (std::size_t offset = 0; offset < section->sh_size; offset += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(object, section->sh_offset + offset);
      if (!symbol || symbol->st_shndx != SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_TLS) continue;
      names.push_back(string_at(object, *strings, symbol->st_name));
    }
  }
  return names;
}

}  // namespace hone
