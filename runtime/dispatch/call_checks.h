// What every tuned_…() call checks before it looks anything up: only what costs nothing.
#pragma once

#include <string>
#include <string_view>

#include <hone/tuned_reduce.h>

namespace hone {

/// Values that were cast from elsewhere may name nothing. Throws Error(invalid_argument).
void require_known(std::string_view function, DType dtype);
void require_known(std::string_view function, const ReduceSpec& spec);

/// Why the address cannot be that of elements of `dtype`; "" if it can.
std::string misalignment(std::string_view name, const void* pointer, DType dtype);

}  // namespace hone
