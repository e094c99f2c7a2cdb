#include "runtime/jit/elf_symbols.h"

#include <cxxabi.h>
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <memory>
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

/// Calls visit(symbol, name) for every thread-local variable in the table of symbols.
template <class Visit>
void for_each_tls_symbol(std::span<const std::byte> object, Visit visit) {
  const auto header = read_at<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
  for (std::size_t s = 0; s < header->e_shnum; ++s) {
    const auto section = section_at(object, *header, s);
    if (!section || section->sh_type != SHT_SYMTAB) continue;
    const auto strings = section_at(object, *header, section->sh_link);
    if (!strings) continue;
    for (std::size_t offset = 0; offset < section->sh_size; offset += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(object, section->sh_offset + offset);
      if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_TLS)
        visit(*symbol, string_at(object, *strings, symbol->st_name));
    }
  }
}

/// "tile" of "_ZZ4blurE4tile", of "tile.0" and of "tile". A plain name could be that of a type as well, "s" of short.
std::string source_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      symbol.starts_with("_Z") ? abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status) : nullptr, &std::free);
  std::string name = demangled ? demangled.get() : symbol;
  if (const std::size_t scope = name.rfind("::"); scope != std::string::npos) name.erase(0, scope + 2);
  return name.substr(0, name.find('.'));
}

}  // namespace

std::vector<std::string> undefined_tls_symbols(std::span<const std::byte> object) {
  std::vector<std::string> names;
  for_each_tls_symbol(object, [&](const Elf64_Sym& symbol, const std::string& name) {
    if (symbol.st_shndx == SHN_UNDEF) names.push_back(name);
  });
  return names;
}

TlsSymbol tls_symbol_at(std::span<const std::byte> object, std::size_t offset) {
  TlsSymbol found;
  // Dynamic shared memory has no size, and a name of the linker beside those of the source.
  for_each_tls_symbol(object, [&](const Elf64_Sym& symbol, const std::string& name) {
    const bool is_inside =
        symbol.st_value <= offset && (symbol.st_size == 0 || offset - symbol.st_value < symbol.st_size);
    if (symbol.st_shndx == SHN_UNDEF || !is_inside || name.starts_with("hone_host_")) return;
    if (found.name.empty() || symbol.st_value >= found.begin) found = {source_name(name), symbol.st_value};
  });
  return found;
}

}  // namespace hone
