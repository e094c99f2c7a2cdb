#include <hone/dtype.h>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {

DType parse_dtype(std::string_view name) {
  std::string known;
  for (const DTypeInfo& dtype : kDTypes) {
    if (dtype.name == name) return dtype.dtype;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", dtype.name);
  }
  throw Error(ErrorCode::not_found, fmt::format("there is no dtype '{}'; there are: {}", name, known));
}

}  // namespace hone
