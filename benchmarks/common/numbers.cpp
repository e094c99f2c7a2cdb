#include "benchmarks/common/numbers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone::benchmarks {
namespace {

template <class T>
T load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <class T>
void store(T value, std::byte* element) {
  std::memcpy(element, &value, sizeof(T));
}

std::uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

float float_of_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 0x1f) return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
}

float float_of_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// How a dtype is read and, if it is floating, written.
struct Codec {
  std::string_view name;
  long double (*read)(const std::byte*);
  void (*write)(double, std::byte*);
  bool is_floating;
};

template <class T>
constexpr Codec plain(std::string_view name) {
  return {name, [](const std::byte* e) { return static_cast<long double>(load<T>(e)); },
          [](double value, std::byte* e) { store(static_cast<T>(value), e); }, std::is_floating_point_v<T>};
}

const Codec& codec(DType dtype) {
  static const Codec codecs[] = {
      plain<float>("f32"), plain<double>("f64"), plain<std::int8_t>("i8"), plain<std::int16_t>("i16"),
      plain<std::int32_t>("i32"), plain<std::int64_t>("i64"), plain<std::uint8_t>("u8"), plain<std::uint16_t>("u16"),
      plain<std::uint32_t>("u32"), plain<std::uint64_t>("u64"), plain<std::uint8_t>("bool"),
      {"f16", [](const std::byte* e) -> long double { return float_of_f16(load<std::uint16_t>(e)); },
       [](double value, std::byte* e) { store(f16_of(static_cast<float>(value)), e); }, true},
      {"bf16", [](const std::byte* e) -> long double { return float_of_bf16(load<std::uint16_t>(e)); },
       [](double value, std::byte* e) {
         store(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16), e);
       }, true},
  };
  for (const Codec& one : codecs)
    if (one.name == info(dtype).name) return one;
  throw Error(ErrorCode::unsupported, fmt::format("the benchmarks cannot read {}: add it to benchmarks/common/numbers.cpp",
                                                  info(dtype).name));
}

}  // namespace

bool is_floating(DType dtype) { return codec(dtype).is_floating; }

void encode(DType dtype, double value, std::byte* element) { codec(dtype).write(value, element); }

std::vector<long double> decode(DType dtype, const std::vector<std::byte>& bytes) {
  const Codec& one = codec(dtype);
  std::vector<long double> values;
  for (std::size_t at = 0; at + info(dtype).size_bytes <= bytes.size(); at += info(dtype).size_bytes)
    values.push_back(one.read(bytes.data() + at));
  return values;
}

}  // namespace hone::benchmarks
