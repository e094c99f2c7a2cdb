// DType: the element types that kernels work on, and the one table of their spellings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <hone/half.h>

namespace hone {

enum class DType : std::uint8_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean, f8e4m3 };

enum class DTypeKind : std::uint8_t { floating, signed_integer, unsigned_integer, boolean };

/// The C++ types of the dtypes, in the order of DType.
using ElementTypes = std::tuple<half, bfloat16, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool,
                                float8_e4m3fn>;

/// The C++ type of a DType that is known at compile time.
template <DType kDType>
using element_t = std::tuple_element_t<static_cast<std::size_t>(kDType), ElementTypes>;

/// The properties of one DType, and its spellings.
struct DTypeInfo {
  DType dtype;
  std::string_view name;        ///< on the command line, in the cache and in messages
  std::string_view cuda_name;   ///< in kernel source
  std::string_view npy_name;    ///< NumPy's type string, little-endian; "" where NumPy has no such type
  std::string_view array_name;  ///< in NumPy, PyTorch and JAX, where it has another name there
  std::size_t size_bytes = 0;
  DTypeKind kind = DTypeKind::boolean;
  int digits = 0;             ///< bits of a significand, the leading one included; of a magnitude for integers
  bool has_infinity = false;  ///< a floating dtype without it has NaN for what is too large

  constexpr bool is_floating() const { return kind == DTypeKind::floating; }
};

namespace detail {

template <DType kDType>
constexpr DTypeInfo dtype_row(std::string_view name, std::string_view cuda_name, std::string_view npy_name,
                              std::string_view array_name) {
  using T = element_t<kDType>;
  using Limits = std::numeric_limits<T>;
  const DTypeKind kind = std::is_same_v<T, bool> ? DTypeKind::boolean
                         : !Limits::is_integer   ? DTypeKind::floating
                         : Limits::is_signed     ? DTypeKind::signed_integer
                                                 : DTypeKind::unsigned_integer;
  return {kDType, name, cuda_name, npy_name, array_name, sizeof(T), kind, Limits::digits, Limits::has_infinity};
}

}  // namespace detail

inline constexpr std::array kDTypes{
    detail::dtype_row<DType::f16>("f16", "hone::Half", "<f2", "float16"),
    detail::dtype_row<DType::bf16>("bf16", "hone::BFloat16", "", "bfloat16"),
    detail::dtype_row<DType::f32>("f32", "float", "<f4", "float32"),
    detail::dtype_row<DType::f64>("f64", "double", "<f8", "float64"),
    detail::dtype_row<DType::i8>("i8", "signed char", "|i1", "int8"),
    detail::dtype_row<DType::i16>("i16", "short", "<i2", "int16"),
    detail::dtype_row<DType::i32>("i32", "int", "<i4", "int32"),
    detail::dtype_row<DType::i64>("i64", "long long", "<i8", "int64"),
    detail::dtype_row<DType::u8>("u8", "unsigned char", "|u1", "uint8"),
    detail::dtype_row<DType::u16>("u16", "unsigned short", "<u2", "uint16"),
    detail::dtype_row<DType::u32>("u32", "unsigned", "<u4", "uint32"),
    detail::dtype_row<DType::u64>("u64", "unsigned long long", "<u8", "uint64"),
    detail::dtype_row<DType::boolean>("bool", "hone::Bool", "|b1", "bool_"),
    detail::dtype_row<DType::f8e4m3>("f8e4m3", "hone::E4M3", "", "float8_e4m3fn"),
};
static_assert(kDTypes.size() == std::tuple_size_v<ElementTypes>);

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

/// The DType called `name`. Throws Error(not_found) that lists the known names.
DType parse_dtype(std::string_view name);

/// Calls f with a value of the C++ type of `dtype`, and returns what it returns.
template <class F>
constexpr auto with_element_type(DType dtype, F&& f) {
  return [&]<class... Elements>(std::type_identity<std::tuple<Elements...>>) {
    using Result = decltype(f(half{}));
    constexpr std::array<Result (*)(F&), sizeof...(Elements)> kCalls{
        [](F& call) -> Result { return call(Elements{}); }...};
    return kCalls[static_cast<std::size_t>(dtype)](f);
  }(std::type_identity<ElementTypes>());
}

namespace detail {
template <class T, class... Elements>
constexpr std::size_t index_of(std::type_identity<std::tuple<Elements...>>) {
  static_assert((std::is_same_v<T, Elements> || ...), "Hone has no dtype for this element type");
  std::size_t index = 0;
  (void)((std::is_same_v<T, Elements> || (++index, false)) || ...);
  return index;
}
}  // namespace detail

/// The DType of a C++ element type; other types have none and do not compile.
template <class T>
inline constexpr DType kDTypeOf = static_cast<DType>(detail::index_of<T>(std::type_identity<ElementTypes>()));

}  // namespace hone
