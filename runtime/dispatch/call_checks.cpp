#include "runtime/dispatch/call_checks.h"

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {

void require_known(std::string_view function, DType dtype) {
  if (static_cast<std::size_t>(dtype) >= kDTypes.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: there is no dtype {}", function, static_cast<int>(dtype)));
}

void require_known(std::string_view function, const ReduceSpec& spec) {
  if (static_cast<std::size_t>(spec.op) >= kReduceOps.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: there is no operation {}", function, static_cast<int>(spec.op)));
  for (DType dtype : {spec.dtype, spec.accumulator.value_or(spec.dtype), spec.result.value_or(spec.dtype)})
    require_known(function, dtype);
}

std::string misalignment(std::string_view name, const void* pointer, DType dtype) {
  const std::size_t bytes = info(dtype).size_bytes;
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0) return "";
  return fmt::format("'{}' at {} is not aligned to its {}-byte elements", name, pointer, bytes);
}

}  // namespace hone
