// cubin_resources(): what ptxas gave a kernel, read from the cubin itself, so that no GPU is needed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace hone {

struct CubinResources {
  int registers = 0;    ///< per thread
  int stack_bytes = 0;  ///< per thread; spilled registers are part of it
};

/// nullopt when the cubin has no such kernel.
std::optional<CubinResources> cubin_resources(std::span<const std::byte> cubin, std::string_view kernel);

}  // namespace hone
