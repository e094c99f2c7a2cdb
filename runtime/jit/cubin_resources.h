// cubin_resources(): what ptxas gave a kernel, read from the cubin itself, so that no GPU is needed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// True if `code` is a 64-bit ELF image with every header and section inside it. The driver takes a cubin without
/// its length and would read past the end of a cut one.
bool is_whole_elf(std::span<const std::byte> code);

/// Registers, local memory (stack, spilled registers are part of it), static shared memory, and the largest block that
/// __launch_bounds__ allows; nullopt when the cubin has no kernel of that symbol. It must be whole, see is_whole_elf().
std::optional<Resources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel);

/// The bytes of each parameter of a kernel, in order; nullopt when the cubin does not tell, as those of a later toolkit
/// may not. `cubin` must be a whole ELF file.
std::optional<std::vector<int>> cubin_parameters(std::span<const std::byte> cubin, std::string_view kernel);

}  // namespace hone
