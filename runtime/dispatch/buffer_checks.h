// check_buffers(): whether the arrays of a call are what its family asks for.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <hone/device.h>
#include <hone/problem.h>
#include <hone/session.h>

namespace hone {

/// Throws invalid_argument, which names `call`, unless the memory at `pointer` is the device's own.
void check_memory(const Device& device, std::string_view call, std::string_view name, const void* pointer);

/// Throws invalid_argument for buffers that are null and, under SessionOptions::validate_pointers, for those that are
/// misaligned, not memory of the device, or hold what the family refuses. For the last it waits for `stream`.
void check_buffers(Device& device, const SessionOptions& options, const Problem& problem,
                   std::span<void* const> buffers, Stream stream);

/// Throws invalid_argument unless a call has as many buffers as it takes.
void check_count(const Problem& problem, std::size_t takes, std::size_t passed);

}  // namespace hone
