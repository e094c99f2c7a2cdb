// CubinElf: the sections of a cubin.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace hone {

/// The code of a kernel is in the section of this name and the kernel's symbol.
inline constexpr std::string_view kCubinTextPrefix = ".text.";

/// A whole ELF file in memory, see is_whole_elf(). Reads are copies, since nothing in it needs to be aligned.
class CubinElf {
 public:
  explicit CubinElf(std::span<const std::byte> bytes) : bytes_(bytes), header_(read<Elf64_Ehdr>(0)) {}

  std::size_t sections() const { return header_.e_shnum; }
  Elf64_Shdr section(std::size_t index) const {
    return read<Elf64_Shdr>(header_.e_shoff + index * header_.e_shentsize);
  }
  std::string name(const Elf64_Shdr& section) const { return text(this->section(header_.e_shstrndx), section.sh_name); }
  std::string text(const Elf64_Shdr& strings, std::size_t offset) const {
    return reinterpret_cast<const char*>(bytes_.data() + strings.sh_offset + offset);
  }

  template <class T>
  T read(std::size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  Elf64_Ehdr header_;
};

}  // namespace hone
