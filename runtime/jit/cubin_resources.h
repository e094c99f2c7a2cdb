// cubin_resources(): what ptxas gave a kernel, read from the cubin itself, so that no GPU is needed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <hone/kernel.h>

namespace hone {

/// Registers, local memory (stack, spilled registers are part of it) and static shared memory; nullopt when the cubin
/// has no kernel of that symbol.
std::optional<Resources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel);

}  // namespace hone
