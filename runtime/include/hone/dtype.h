// DType: the element types that kernels work on, and the one table of their spellings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hone {

enum class DType : std::uint8_t { f32, f64, i32, i64 };

/// How one DType is spelled where.
struct DTypeInfo {
  DType dtype;
  std::string_view name;         ///< on the command line, in the cache and in messages
  std::string_view cuda_name;    ///< in kernel source
  std::string_view npy_name;     ///< NumPy's type string, little-endian
  std::size_t size_bytes;
  bool is_floating;
};

inline constexpr std::array<DTypeInfo, 4> kDTypes{{
    {DType::f32, "f32", "float", "<f4", 4, true},
    {DType::f64, "f64", "double", "<f8", 8, true},
    {DType::i32, "i32", "int", "<i4", 4, false},
    {DType::i64, "i64", "long long", "<i8", 8, false},
}};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

/// The DType called `name`. Throws Error(not_found) that lists the known names.
DType parse_dtype(std::string_view name);

/// The DType of a C++ element type; other types have none and do not compile.
template <class T>
inline constexpr DType kDTypeOf = [] { static_assert(sizeof(T) == 0, "Hone has no dtype for this element type"); return DType{}; }();
template <>
inline constexpr DType kDTypeOf<float> = DType::f32;
template <>
inline constexpr DType kDTypeOf<double> = DType::f64;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::i32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::i64;

}  // namespace hone
