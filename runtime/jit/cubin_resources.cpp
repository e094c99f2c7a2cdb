#include "runtime/jit/cubin_resources.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include <fmt/format.h>

#include "runtime/jit/cubin_elf.h"

namespace hone {
namespace {

constexpr std::string_view kInfo = ".nv.info";

// Records of that section, as `cuobjdump -elf` prints them: format, attribute, size of the value, value.
constexpr std::uint8_t kSizedValue = 0x04;
constexpr std::uint8_t kFrameSize = 0x11;      // EIATTR_FRAME_SIZE: symbol index, bytes
constexpr std::uint8_t kParameterInfo = 0x17;  // EIATTR_KPARAM_INFO: index, ordinal, offset, attributes
constexpr std::uint8_t kRegisterCount = 0x2f;  // EIATTR_REGCOUNT: symbol index, registers per thread

// EIATTR_MAX_THREADS in .nv.info.KERNEL has x, y and z where the kernel has __launch_bounds__.
constexpr std::uint8_t kMaxThreads = 0x05;

/// True if `count` pieces of `size` bytes each from `offset` lie within `total` bytes, without overflowing.
bool fits(std::uint64_t offset, std::uint64_t count, std::uint64_t size, std::uint64_t total) {
  return offset <= total && (size == 0 || count <= (total - offset) / size);
}

template <class Header>
Header header_at(std::span<const std::byte> code, std::uint64_t offset) {
  Header header;
  std::memcpy(&header, code.data() + offset, sizeof(Header));
  return header;
}

std::string symbol_name(const CubinElf& elf, std::uint32_t index) {
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr symbols = elf.section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    return elf.text(elf.section(symbols.sh_link),
                    elf.read<Elf64_Sym>(symbols.sh_offset + index * sizeof(Elf64_Sym)).st_name);
  }
  return "";
}

/// Calls visit(attribute, offset of its value) for each sized record of a section.
template <class Visit>
void for_each_attribute(const CubinElf& elf, std::string_view section, Visit visit) {
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr info = elf.section(i);
    if (elf.name(info) != section) continue;
    for (std::size_t at = info.sh_offset; at < info.sh_offset + info.sh_size;) {
      const bool is_sized = elf.read<std::uint8_t>(at) == kSizedValue;
      if (is_sized) visit(elf.read<std::uint8_t>(at + 1), at + 4);
      at += 4u + (is_sized ? elf.read<std::uint16_t>(at + 2) : 0u);
    }
  }
}

/// The value that an attribute has for a kernel; −1 when there is none.
int attribute_of(const CubinElf& elf, std::uint8_t wanted, std::string_view kernel) {
  int value = -1;
  for_each_attribute(elf, kInfo, [&](std::uint8_t attribute, std::size_t at) {
    if (attribute == wanted && symbol_name(elf, elf.read<std::uint32_t>(at)) == kernel)
      value = elf.read<std::int32_t>(at + 4);
  });
  return value;
}

/// The threads of the largest block that the kernel was compiled for.
int max_threads_of(const CubinElf& elf, std::string_view kernel) {
  int threads = Resources{}.max_threads_per_block;
  for_each_attribute(elf, fmt::format("{}.{}", kInfo, kernel), [&](std::uint8_t attribute, std::size_t at) {
    if (attribute == kMaxThreads)
      threads = elf.read<std::int32_t>(at) * elf.read<std::int32_t>(at + 4) * elf.read<std::int32_t>(at + 8);
  });
  return threads;
}

constexpr std::string_view kSharedPrefix = ".nv.shared.";

// Where a cubin has this section (from sm_90 on), each kernel's shared memory begins with what the system reserves,
// DeviceFacts::smem_bytes_reserved_per_block, which is not the kernel's; ptxas -v does not count it either.
constexpr std::string_view kReservedSection = ".nv.shared.reserved.0";
constexpr int kReservedBytes = 1024;

constexpr unsigned kParameterSizeShift = 18;  // in the attributes of EIATTR_KPARAM_INFO

}  // namespace

bool is_whole_elf(std::span<const std::byte> code) {
  if (code.size() < sizeof(Elf64_Ehdr)) return false;
  const auto elf = header_at<Elf64_Ehdr>(code, 0);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (elf.e_shnum == 0 || elf.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (elf.e_phnum != 0 && elf.e_phentsize != sizeof(Elf64_Phdr)) return false;
  if (!fits(elf.e_shoff, elf.e_shnum, sizeof(Elf64_Shdr), code.size())) return false;
  if (!fits(elf.e_phoff, elf.e_phnum, sizeof(Elf64_Phdr), code.size())) return false;
  for (std::uint64_t i = 0; i < elf.e_shnum; ++i) {
    const auto section = header_at<Elf64_Shdr>(code, elf.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS && !fits(section.sh_offset, section.sh_size, 1, code.size())) return false;
  }
  return true;
}

std::optional<std::vector<int>> cubin_parameters(std::span<const std::byte> cubin, std::string_view kernel) {
  const CubinElf elf(cubin);
  const std::string wanted = std::string(".nv.info.").append(kernel);
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr info = elf.section(i);
    if (elf.name(info) != wanted) continue;
    std::map<std::uint16_t, int> parameters;
    for (std::size_t at = info.sh_offset; at < info.sh_offset + info.sh_size;) {
      const auto format = elf.read<std::uint8_t>(at);
      if (format == kSizedValue && elf.read<std::uint8_t>(at + 1) == kParameterInfo)
        parameters[elf.read<std::uint16_t>(at + 8)] =
            static_cast<int>(elf.read<std::uint32_t>(at + 12) >> kParameterSizeShift);
      at += 4u + (format == kSizedValue ? elf.read<std::uint16_t>(at + 2) : 0u);
    }
    std::vector<int> bytes;
    for (const auto& [ordinal, size] : parameters) bytes.push_back(size);
    const bool is_whole = parameters.empty() || parameters.rbegin()->first + 1u == parameters.size();
    return is_whole && !parameters.empty() ? std::optional(bytes) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Resources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel) {
  const CubinElf elf(cubin);
  std::optional<Resources> found;
  int static_smem_bytes = 0, reserved_bytes = 0;
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr section = elf.section(i);
    const std::string name = elf.name(section);
    if (name == kReservedSection) reserved_bytes = kReservedBytes;
    if (name == std::string(kSharedPrefix).append(kernel)) static_smem_bytes = static_cast<int>(section.sh_size);
    if (name != std::string(kCubinTextPrefix).append(kernel)) continue;
    found = Resources{.registers = attribute_of(elf, kRegisterCount, kernel),
                      .local_bytes = attribute_of(elf, kFrameSize, kernel),
                      .max_threads_per_block = max_threads_of(elf, kernel)};
  }
  if (found) found->static_smem_bytes = std::max(0, static_smem_bytes - reserved_bytes);
  return found;
}

}  // namespace hone
