// DType: the element types that kernels work on, and the one table of their spellings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <hone/half.h>

namespace hone {

enum class DType : std::uint8_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

enum class DTypeKind : std::uint8_t { floating, signed_integer, unsigned_integer, boolean };

/// How one DType is spelled where.
struct DTypeInfo {
  DType dtype;
  std::string_view name;       ///< on the command line, in the cache and in messages
  std::string_view cuda_name;  ///< in kernel source
  std::string_view npy_name;   ///< NumPy's type string, little-endian; "" where NumPy has no such type
  std::size_t size_bytes;
  DTypeKind kind;

  constexpr bool is_floating() const { return kind == DTypeKind::floating; }
};

inline constexpr std::array<DTypeInfo, 13> kDTypes{{
    {DType::f16, "f16", "hone::Half", "<f2", 2, DTypeKind::floating},
    {DType::bf16, "bf16", "hone::BFloat16", "", 2, DTypeKind::floating},
    {DType::f32, "f32", "float", "<f4", 4, DTypeKind::floating},
    {DType::f64, "f64", "double", "<f8", 8, DTypeKind::floating},
    {DType::i8, "i8", "signed char", "|i1", 1, DTypeKind::signed_integer},
    {DType::i16, "i16", "short", "<i2", 2, DTypeKind::signed_integer},
    {DType::i32, "i32", "int", "<i4", 4, DTypeKind::signed_integer},
    {DType::i64, "i64", "long long", "<i8", 8, DTypeKind::signed_integer},
    {DType::u8, "u8", "unsigned char", "|u1", 1, DTypeKind::unsigned_integer},
    {DType::u16, "u16", "unsigned short", "<u2", 2, DTypeKind::unsigned_integer},
    {DType::u32, "u32", "unsigned", "<u4", 4, DTypeKind::unsigned_integer},
    {DType::u64, "u64", "unsigned long long", "<u8", 8, DTypeKind::unsigned_integer},
    {DType::boolean, "bool", "hone::Bool", "|b1", 1, DTypeKind::boolean},
}};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

/// The DType called `name`. Throws Error(not_found) that lists the known names.
DType parse_dtype(std::string_view name);

/// The DType of a C++ element type; other types have none and do not compile.
template <class T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "Hone has no dtype for this element type");
  return DType{};
}();
template <> inline constexpr DType kDTypeOf<half> = DType::f16;
template <> inline constexpr DType kDTypeOf<bfloat16> = DType::bf16;
template <> inline constexpr DType kDTypeOf<float> = DType::f32;
template <> inline constexpr DType kDTypeOf<double> = DType::f64;
template <> inline constexpr DType kDTypeOf<std::int8_t> = DType::i8;
template <> inline constexpr DType kDTypeOf<std::int16_t> = DType::i16;
template <> inline constexpr DType kDTypeOf<std::int32_t> = DType::i32;
template <> inline constexpr DType kDTypeOf<std::int64_t> = DType::i64;
template <> inline constexpr DType kDTypeOf<std::uint8_t> = DType::u8;
template <> inline constexpr DType kDTypeOf<std::uint16_t> = DType::u16;
template <> inline constexpr DType kDTypeOf<std::uint32_t> = DType::u32;
template <> inline constexpr DType kDTypeOf<std::uint64_t> = DType::u64;
template <> inline constexpr DType kDTypeOf<bool> = DType::boolean;

/// Calls f with a value of the C++ type of `dtype`, and returns what it returns.
template <class F>
constexpr auto with_element_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16: return f(half{});
    case DType::bf16: return f(bfloat16{});
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::boolean: break;
  }
  return f(bool{});
}

namespace detail {
template <DType kDType>
struct ElementOf;
template <> struct ElementOf<DType::f16> { using type = half; };
template <> struct ElementOf<DType::bf16> { using type = bfloat16; };
template <> struct ElementOf<DType::f32> { using type = float; };
template <> struct ElementOf<DType::f64> { using type = double; };
template <> struct ElementOf<DType::i8> { using type = std::int8_t; };
template <> struct ElementOf<DType::i16> { using type = std::int16_t; };
template <> struct ElementOf<DType::i32> { using type = std::int32_t; };
template <> struct ElementOf<DType::i64> { using type = std::int64_t; };
template <> struct ElementOf<DType::u8> { using type = std::uint8_t; };
template <> struct ElementOf<DType::u16> { using type = std::uint16_t; };
template <> struct ElementOf<DType::u32> { using type = std::uint32_t; };
template <> struct ElementOf<DType::u64> { using type = std::uint64_t; };
template <> struct ElementOf<DType::boolean> { using type = bool; };
}  // namespace detail

/// The C++ type of a DType that is known at compile time.
template <DType kDType>
using element_t = typename detail::ElementOf<kDType>::type;

}  // namespace hone
