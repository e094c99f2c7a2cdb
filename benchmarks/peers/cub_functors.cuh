// The code that a user of CUB writes around it: element maps, combining operators and the types of results.
#pragma once

#include <cuda/std/cmath>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string_view>

namespace hone::benchmarks {

template <class T>
inline constexpr bool kIsFloating =
    cuda::std::is_floating_point_v<T> || cuda::std::is_same_v<T, __half> || cuda::std::is_same_v<T, __nv_bfloat16>;

/// The type that sums of T are kept in: f32 for 16-bit floats, 64 bits for integers. As Hone's, so that both do the
/// same work.
template <class T>
using Wide = cuda::std::conditional_t<
    cuda::std::is_same_v<T, double>, double,
    cuda::std::conditional_t<kIsFloating<T>, float,
                             cuda::std::conditional_t<cuda::std::is_unsigned_v<T> && !cuda::std::is_same_v<T, bool>,
                                                      unsigned long long, long long>>>;

/// Means and norms of integers are floating.
template <class T>
using Floating = cuda::std::conditional_t<kIsFloating<T>, Wide<T>, double>;

template <class T>
constexpr std::string_view kName = "";
template <> constexpr std::string_view kName<__half> = "f16";
template <> constexpr std::string_view kName<__nv_bfloat16> = "bf16";
template <> constexpr std::string_view kName<float> = "f32";
template <> constexpr std::string_view kName<double> = "f64";
template <> constexpr std::string_view kName<signed char> = "i8";
template <> constexpr std::string_view kName<short> = "i16";
template <> constexpr std::string_view kName<int> = "i32";
template <> constexpr std::string_view kName<long long> = "i64";
template <> constexpr std::string_view kName<unsigned char> = "u8";
template <> constexpr std::string_view kName<unsigned short> = "u16";
template <> constexpr std::string_view kName<unsigned> = "u32";
template <> constexpr std::string_view kName<unsigned long long> = "u64";
template <> constexpr std::string_view kName<bool> = "bool";

template <class Acc>
struct Convert {
  template <class T>
  __device__ Acc operator()(T x) const { return static_cast<Acc>(x); }
};

template <class Acc>
struct Square {
  template <class T>
  __device__ Acc operator()(T x) const { return static_cast<Acc>(x) * static_cast<Acc>(x); }
};

template <class Acc>
struct Magnitude {
  template <class T>
  __device__ Acc operator()(T x) const {
    const Acc wide = static_cast<Acc>(x);
    if constexpr (cuda::std::is_signed_v<Acc>) return wide < Acc{0} ? -wide : wide;
    else return wide;
  }
};

template <class Acc>
struct IsNonZero {
  template <class T>
  __device__ Acc operator()(T x) const { return static_cast<Acc>(static_cast<Wide<T>>(x) != Wide<T>{0}); }
};

template <class T>
struct Extremes {
  T least, greatest;
};
struct ToExtremes {
  template <class T>
  __device__ Extremes<T> operator()(T x) const { return {x, x}; }
};
struct WidenExtremes {
  template <class T>
  __device__ Extremes<T> operator()(const Extremes<T>& a, const Extremes<T>& b) const {
    return {b.least < a.least ? b.least : a.least, a.greatest < b.greatest ? b.greatest : a.greatest};
  }
};

/// Count, mean and sum of squared deviations; merged as Chan, Golub and LeVeque do (1979).
template <class Acc>
struct Moments {
  Acc count, mean, deviations;
};
template <class Acc>
struct ToMoments {
  template <class T>
  __device__ Moments<Acc> operator()(T x) const { return {Acc{1}, static_cast<Acc>(x), Acc{0}}; }
};
struct MergeMoments {
  template <class Acc>
  __device__ Moments<Acc> operator()(const Moments<Acc>& a, const Moments<Acc>& b) const {
    const Acc count = a.count + b.count;
    if (count == Acc{0}) return a;
    const Acc delta = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + delta * share, a.deviations + b.deviations + delta * delta * a.count * share};
  }
};
template <class Acc>
struct MeanVariance {
  Acc mean, variance;
};
struct ToMeanVariance {
  template <class Acc>
  __host__ __device__ MeanVariance<Acc> operator()(const Moments<Acc>& m) const {
    return {m.mean, m.deviations / m.count};
  }
};

/// A maximum and Σ exp(x − maximum): one pass, without overflow.
template <class Acc>
struct ScaledSum {
  Acc greatest, sum;
};
template <class Acc>
struct ToScaledSum {
  template <class T>
  __device__ ScaledSum<Acc> operator()(T x) const { return {static_cast<Acc>(x), Acc{1}}; }
};
struct MergeScaledSums {
  template <class Acc>
  __device__ ScaledSum<Acc> operator()(const ScaledSum<Acc>& a, const ScaledSum<Acc>& b) const {
    const bool first = b.greatest < a.greatest;
    const Acc greatest = first ? a.greatest : b.greatest;
    const Acc difference = first ? b.greatest - a.greatest : a.greatest - b.greatest;
    const Acc scale = a.greatest == b.greatest ? Acc{1} : cuda::std::exp(difference);
    return {greatest, first ? a.sum + b.sum * scale : a.sum * scale + b.sum};
  }
};
struct ToLogSumExp {
  template <class Acc>
  __host__ __device__ Acc operator()(const ScaledSum<Acc>& s) const { return s.greatest + cuda::std::log(s.sum); }
};

template <class Result>
struct DivideBy {
  Result count;
  template <class Acc>
  __host__ __device__ Result operator()(Acc sum) const { return static_cast<Result>(sum) / count; }
};
template <class Result>
struct SquareRoot {
  template <class Acc>
  __host__ __device__ Result operator()(Acc sum) const { return cuda::std::sqrt(static_cast<Result>(sum)); }
};

template <class Acc>
struct Product {
  template <class Pair>
  __device__ Acc operator()(const Pair& pair) const {
    return static_cast<Acc>(cuda::std::get<0>(pair)) * static_cast<Acc>(cuda::std::get<1>(pair));
  }
};

}  // namespace hone::benchmarks
