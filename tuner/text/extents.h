// parse_extents(): the extents of a block or a grid, as options spell them.
#pragma once

#include <string_view>

#include <hone/kernel.h>

namespace hone::tuner {

/// "4", "4,2" or "4,2,1"; an x may stand for the comma: "8x8". Throws CommandError(usage) that names the option.
Dim3 parse_extents(std::string_view option, std::string_view text);

/// A block that GPUs can launch. Throws CommandError(usage) for one that has no thread or more than a block can have.
Dim3 parse_block(std::string_view option, std::string_view text);

/// Bytes of shared memory, as parse_bytes() has them, up to 32 bits. Throws CommandError(usage) that names the option.
unsigned parse_smem_bytes(std::string_view option, std::string_view text);

/// A number of up to 32 bits. Throws CommandError(usage) that names the option.
unsigned parse_unsigned(std::string_view option, std::string_view text);

}  // namespace hone::tuner
