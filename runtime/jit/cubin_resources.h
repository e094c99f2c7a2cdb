// cubin_resources(): what ptxas gave a kernel, read from the cubin itself, so that no GPU is needed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <hone/kernel.h>

namespace hone {

/// Whether `code` is a 64-bit ELF image with every header and section inside it. The driver takes a cubin without
/// its length and would read past the end of a cut one.
bool is_whole_elf(std::span<const std::byte> code);

/// Registers, local memory (stack, spilled registers are part of it), static shared memory, and the largest block that
/// __launch_bounds__ allows; nullopt when the cubin has no kernel of that symbol. It must be whole, see is_whole_elf().
std::optional<Resources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel);

}  // namespace hone
