// cubin_resources(): what ptxas gave a kernel, read from the cubin itself, so that no GPU is needed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// Names of the kernels in a cubin, mangled unless they are extern "C".
std::vector<std::string> cubin_kernels(std::span<const std::byte> cubin);

/// Registers, local memory (stack, spilled registers are part of it) and static shared memory; nullopt when the cubin
/// has no such kernel.
std::optional<Resources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel);

}  // namespace hone
