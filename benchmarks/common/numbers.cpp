#include "benchmarks/common/numbers.h"

#include <cstring>
#include <type_traits>

namespace hone::benchmarks {

void encode(DType dtype, float value, std::byte* element) {
  with_element_type(dtype, [&]<class T>(T) {
    const T converted = static_cast<T>(value);
    std::memcpy(element, &converted, sizeof(T));
    return 0;
  });
}

std::vector<long double> decode(DType dtype, const std::vector<std::byte>& bytes) {
  return with_element_type(dtype, [&]<class T>(T element) {
    std::vector<long double> values;
    for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      std::memcpy(&element, bytes.data() + at, sizeof(T));
      if constexpr (std::is_class_v<T>) values.push_back(static_cast<float>(element));
      else values.push_back(static_cast<long double>(element));
    }
    return values;
  });
}

}  // namespace hone::benchmarks
