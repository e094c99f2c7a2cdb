// MovedCall: what tuned_copy() and tuned_transpose() check of their arguments on every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/dispatch/call_checks.h"

namespace hone {

/// True if any extent of a call is 0; a negative one is refused, and so are elements that do not have 1, 2, 4, 8 or 16
/// bytes.
bool is_empty(std::string_view function, std::size_t element_bytes, const Extents& extents);

/// Both arrays are there, and the family takes the problem: pitches are no part of what finds a plan, so a hit does not
/// say that they fit.
void check_arrays(const Call& call, const void* in, const void* out);

/// The two arrays share no byte.
void check_apart(const Call& call, const void* in, const void* out);

}  // namespace hone
