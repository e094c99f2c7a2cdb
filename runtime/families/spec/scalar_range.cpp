#include "runtime/families/spec/scalar_range.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/families/counts.h"

namespace hone {
namespace {

constexpr std::int64_t kMostExact = (std::int64_t{1} << std::numeric_limits<double>::digits) - 1;

template <class T>
std::string integer_fault(const KernelArgument& argument, double value) {
  using Limits = std::numeric_limits<T>;
  const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(Limits::max(), kMostExact));
  const std::int64_t least = std::is_signed_v<T> ? std::max<std::int64_t>(Limits::min(), -kMostExact) : 0;
  if (value >= static_cast<double>(least) && value <= static_cast<double>(most) && value == std::floor(value))
    return "";
  return fmt::format("{} is {}, and as {} it takes integers from {} to {}; pass one of these, or {}", argument.name,
                     value, info(argument.dtype).name, least, most,
                     sizeof(T) < 8 ? "give the kernel another type" : "a larger one in an array");
}

}  // namespace

std::string scalar_fault(const KernelArgument& argument, double value) {
  return with_element_type(argument.dtype, [&]<class T>(T) -> std::string {
    if constexpr (std::is_integral_v<T>) {
      return integer_fault<T>(argument, value);
    } else {
      const double held = number_of<double>(element_of<T>(value));
      if (std::isinf(held) == std::isinf(value) && std::isnan(held) == std::isnan(value)) return "";
      return fmt::format("{} is {}, which is beyond the range of {}; give the kernel a wider type", argument.name,
                         value, info(argument.dtype).name);
    }
  });
}

}  // namespace hone
