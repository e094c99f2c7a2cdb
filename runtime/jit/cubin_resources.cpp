#include "runtime/jit/cubin_resources.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace hone {
namespace {

// Records of the section .nv.info, as `cuobjdump -elf` prints them: format, attribute, size of the value, value.
constexpr std::uint8_t kSizedValue = 0x04;
constexpr std::uint8_t kFrameSize = 0x11;      // EIATTR_FRAME_SIZE: symbol index, bytes
constexpr std::uint8_t kRegisterCount = 0x2f;  // EIATTR_REGCOUNT: symbol index, registers per thread

/// An ELF file in memory. Reads are copies, since nothing in it needs to be aligned.
class Elf {
 public:
  explicit Elf(std::span<const std::byte> bytes) : bytes_(bytes), header_(read<Elf64_Ehdr>(0)) {}

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

std::string symbol_name(const Elf& elf, std::uint32_t index) {
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr symbols = elf.section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    return elf.text(elf.section(symbols.sh_link),
                    elf.read<Elf64_Sym>(symbols.sh_offset + index * sizeof(Elf64_Sym)).st_name);
  }
  return "";
}

/// The value that an attribute has for a kernel; −1 when there is none.
int attribute_of(const Elf& elf, std::uint8_t wanted, std::string_view kernel) {
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr info = elf.section(i);
    if (elf.name(info) != ".nv.info") continue;
    for (std::size_t at = info.sh_offset; at < info.sh_offset + info.sh_size;) {
      const auto format = elf.read<std::uint8_t>(at);
      const auto attribute = elf.read<std::uint8_t>(at + 1);
      const auto size = elf.read<std::uint16_t>(at + 2);
      if (format == kSizedValue && attribute == wanted && symbol_name(elf, elf.read<std::uint32_t>(at + 4)) == kernel)
        return elf.read<std::int32_t>(at + 8);
      at += 4u + (format == kSizedValue ? size : 0u);
    }
  }
  return -1;
}

constexpr std::string_view kTextPrefix = ".text.", kSharedPrefix = ".nv.shared.";

// Where a cubin has this section (from sm_90 on), each kernel's shared memory begins with what the system reserves,
// DeviceFacts::smem_bytes_reserved_per_block, which is not the kernel's; ptxas -v does not count it either.
constexpr std::string_view kReservedSection = ".nv.shared.reserved.0";
constexpr int kReservedBytes = 1024;

}  // namespace

std::optional<Resources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel) {
  const Elf elf(cubin);
  std::optional<Resources> found;
  int static_smem_bytes = 0, reserved_bytes = 0;
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr section = elf.section(i);
    const std::string name = elf.name(section);
    if (name == kReservedSection) reserved_bytes = kReservedBytes;
    if (name == std::string(kSharedPrefix).append(kernel)) static_smem_bytes = static_cast<int>(section.sh_size);
    if (name != std::string(kTextPrefix).append(kernel)) continue;
    found = Resources{.registers = attribute_of(elf, kRegisterCount, kernel),
                      .local_bytes = attribute_of(elf, kFrameSize, kernel)};
  }
  if (found) found->static_smem_bytes = std::max(0, static_smem_bytes - reserved_bytes);
  return found;
}

}  // namespace hone
