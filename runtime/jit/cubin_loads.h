// cubin_bytes_in_flight(): the loads of a thread that are under way at once, read from the machine code.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace hone {

/// The most bytes that a thread of a kernel has asked device memory for and not waited for yet, anywhere in its code.
/// The source says how many loads are independent; ptxas may reuse registers, so that they wait for each other.
/// nullopt if the code does not tell: there is no kernel of that symbol, it loads nothing, it copies to shared memory
/// without registers, or the architecture is not one of sm_75 to sm_121. `cubin` must be whole, see is_whole_elf().
std::optional<int> cubin_bytes_in_flight(std::span<const std::byte> cubin, std::string_view architecture,
                                         std::string_view kernel);

}  // namespace hone
