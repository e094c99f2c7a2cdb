// Scalar types: traits, conversions between all of them, bounds, maximum and minimum with NaN policies, 2^x and log₂ x.
#pragma once

#include "half.cuh"

namespace hone {

/// A truth value in memory: one byte; any value but 0 is true.
struct Bool {
  unsigned char byte;
};

template <class A, class B> inline constexpr bool kSame = false;
template <class A> inline constexpr bool kSame<A, A> = true;

template <bool kCondition, class A, class B>
struct Select {
  using type = A;
};
template <class A, class B>
struct Select<false, A, B> {
  using type = B;
};

/// The same bits as a value of another type of the same size.
template <class To, class From>
__device__ To bits_as(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  memcpy(&result, &value, sizeof(To));
  return result;
}

/// The smaller of a count and a number of 32 bits.
__device__ unsigned at_most(auto count, unsigned most) { return count < most ? static_cast<unsigned>(count) : most; }

template <class T> inline constexpr bool kIsFloat16 = kIsSmallFloat<T> && sizeof(T) == 2;
template <class T> inline constexpr bool kIsFloating = kSame<T, float> || kSame<T, double> || kIsSmallFloat<T>;
template <class T> inline constexpr bool kIsInteger = !kIsFloating<T> && !kSame<T, Bool>;
template <class T>
inline constexpr bool kIsSigned =
    kSame<T, signed char> || kSame<T, short> || kSame<T, int> || kSame<T, long long> || kIsFloating<T>;

template <class To, class From>
__device__ To convert(From x) {
  if constexpr (kSame<To, Bool> && kSame<From, Bool>) return {static_cast<unsigned char>(x.byte != 0)};
  else if constexpr (kSame<To, From>) return x;
  else if constexpr (kSame<From, Bool>) return convert<To>(x.byte != 0 ? 1u : 0u);
  else if constexpr (kIsSmallFloat<From>) return convert<To>(static_cast<float>(x));
  else if constexpr (kSame<To, Bool>) return {static_cast<unsigned char>(x != From(0))};
  else if constexpr (kIsSmallFloat<To> && kSame<From, float>) return To(x);
  else if constexpr (kIsSmallFloat<To> && (kSame<From, double> || sizeof(From) < 8))
    return To(rounded_to_odd(static_cast<double>(x)));
  else if constexpr (kIsSmallFloat<To>)
    return To(rounded_to_odd(static_cast<typename Select<kIsSigned<From>, long long, unsigned long long>::type>(x)));
  else return static_cast<To>(x);
}

/// True if x is NaN; false for types without NaN.
template <class T>
__device__ bool is_nan(T x) {
  if constexpr (kIsSmallFloat<T>) return is_nan(static_cast<float>(x));
  else if constexpr (kIsFloating<T>) return x != x;
  else return false;
}

/// The largest and smallest value of an accumulator type: infinities where the type has them.
template <class T>
__device__ T highest() {
  if constexpr (kSame<T, float>) return __int_as_float(0x7f800000);
  else if constexpr (kSame<T, double>) return __longlong_as_double(0x7ff0000000000000LL);
  else if constexpr (kIsSigned<T>) return static_cast<T>((1ull << (8 * sizeof(T) - 1)) - 1);
  else return static_cast<T>(-1);
}

template <class T>
__device__ T lowest() {
  if constexpr (kIsFloating<T>) return -highest<T>();
  else if constexpr (kIsSigned<T>) return -highest<T>() - 1;
  else return T(0);
}

/// The NaN without a sign or a payload, of a floating accumulator.
template <class T>
__device__ T quiet_nan() {
  if constexpr (kSame<T, float>) return __int_as_float(0x7fc00000);
  else return __longlong_as_double(0x7ff8000000000000LL);
}

/// The upper or the lower bound of In, as an accumulator: the identity of minimum or maximum.
template <bool kUpper, class Acc, class In>
__device__ Acc bound_of() {
  using Bounded = typename Select<kIsInteger<In>, In, Acc>::type;
  if constexpr (kSame<In, Bool>) return Acc(kUpper ? 1 : 0);
  else return static_cast<Acc>(kUpper ? highest<Bounded>() : lowest<Bounded>());
}

/// The larger, or the smaller, of two numbers. A NaN is propagated, or ignored with kIgnoreNan.
template <bool kLargest, bool kIgnoreNan, class T>
__device__ T extreme(T a, T b) {
  if constexpr (kSame<T, float>) {
    if constexpr (kIgnoreNan) return kLargest ? fmaxf(a, b) : fminf(a, b);
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
    float result;
    if constexpr (kLargest) asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    else asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#endif
  }
  const bool a_is_beyond = kLargest ? a > b : a < b;  // false if either is NaN
  return a_is_beyond || is_nan(kIgnoreNan ? b : a) ? a : b;
}
template <bool kIgnoreNan, class T>
__device__ T larger(T a, T b) { return extreme<true, kIgnoreNan>(a, b); }
template <bool kIgnoreNan, class T>
__device__ T smaller(T a, T b) { return extreme<false, kIgnoreNan>(a, b); }

template <class T> using RankOf = typename Select<sizeof(T) == 8, unsigned long long, unsigned>::type;

/// An unsigned key in the order of accumulators. ±0 share one, and so do NaNs, alone (all ones); no float has key 0.
template <class T>
__device__ RankOf<T> ascending_rank(T x) {
  using Rank = RankOf<T>;
  static_assert(sizeof(T) == sizeof(Rank));
  constexpr Rank kTopBit = Rank(1) << (8 * sizeof(Rank) - 1);
  if constexpr (kIsFloating<T>) {
    const Rank bits = bits_as<Rank>(x + T(0));
    const Rank rank = (bits & kTopBit) != 0 ? ~bits : bits | kTopBit;
    return is_nan(x) ? ~Rank(0) : rank;
  } else {
    return kIsSigned<T> ? static_cast<Rank>(x) ^ kTopBit : static_cast<Rank>(x);
  }
}

/// 2^x. The GPU's instruction has an error of 2 ulp and flushes subnormal results to 0 (PTX ISA, ex2.approx.ftz.f32).
__device__ inline float power_of_two(float x) {
#ifdef HONE_HOST_DEVICE
  return exp2f(x);
#else
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#endif
}
__device__ inline double power_of_two(double x) { return exp2(x); }

/// log₂ x. The GPU's instruction has an absolute error of 2^−22 between 0.5 and 2, that relative error elsewhere, and
/// flushes subnormal inputs to 0 (PTX ISA, lg2.approx.ftz.f32).
__device__ inline float binary_logarithm(float x) {
#ifdef HONE_HOST_DEVICE
  return log2f(x);
#else
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#endif
}

}  // namespace hone
