// One dtype's column of the table; compiled once for each, with HONE_ELEMENT (its C++ type) and HONE_TABLE (the
// function to define). Operations that CUB has are called by name, the others are what its documentation has a user
// write: TransformReduce with an element map and an operator, and an output iterator for what is done to the final
// value.
#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>

#include <limits>
#include <vector>

#include "benchmarks/peers/cub_functors.cuh"
#include "benchmarks/peers/cub_reductions.h"

namespace hone::benchmarks {
namespace {

using T = HONE_ELEMENT;
using cub::DeviceReduce;

/// The arguments of every call.
struct Call {
  void* temp;
  std::size_t& temp_bytes;
  const void* const* inputs;
  std::int64_t n;
  void* out;
  cudaStream_t stream;

  const T* in() const { return static_cast<const T*>(inputs[0]); }
  template <class Result>
  Result* to() const { return static_cast<Result*>(out); }

  template <class In, class Out, class Combine, class Map, class Init>
  cudaError_t transform(In in, Out to, Combine combine, Map map, Init init) const {
    if (n <= std::numeric_limits<int>::max())
      return DeviceReduce::TransformReduce(temp, temp_bytes, in, to, static_cast<int>(n), combine, map, init, stream);
    return DeviceReduce::TransformReduce(temp, temp_bytes, in, to, n, combine, map, init, stream);
  }
};

struct Sum {
  using Result = Wide<T>;
  static cudaError_t run(const Call& c) {
    if constexpr (!cuda::std::is_same_v<T, Result>) {
      return c.transform(c.in(), c.to<Result>(), cuda::std::plus<>{}, Convert<Result>{}, Result{0});
    } else if (c.n <= std::numeric_limits<int>::max()) {
      return DeviceReduce::Sum(c.temp, c.temp_bytes, c.in(), c.to<T>(), static_cast<int>(c.n), c.stream);
    } else {
      return DeviceReduce::Sum(c.temp, c.temp_bytes, c.in(), c.to<T>(), c.n, c.stream);
    }
  }
};

struct Multiply {
  using Result = Wide<T>;
  static cudaError_t run(const Call& c) {
    return c.transform(c.in(), c.to<Result>(), cuda::std::multiplies<>{}, Convert<Result>{}, Result{1});
  }
};

struct Min {
  using Result = T;
  static cudaError_t run(const Call& c) {
    if (c.n <= std::numeric_limits<int>::max())
      return DeviceReduce::Min(c.temp, c.temp_bytes, c.in(), c.to<T>(), static_cast<int>(c.n), c.stream);
    return DeviceReduce::Min(c.temp, c.temp_bytes, c.in(), c.to<T>(), c.n, c.stream);
  }
};

struct Max {
  using Result = T;
  static cudaError_t run(const Call& c) {
    if (c.n <= std::numeric_limits<int>::max())
      return DeviceReduce::Max(c.temp, c.temp_bytes, c.in(), c.to<T>(), static_cast<int>(c.n), c.stream);
    return DeviceReduce::Max(c.temp, c.temp_bytes, c.in(), c.to<T>(), c.n, c.stream);
  }
};

struct MinMax {
  using Result = T;
  static constexpr int values = 2;
  static cudaError_t run(const Call& c) {
    using Limits = cuda::std::numeric_limits<T>;
    return c.transform(c.in(), c.to<Extremes<T>>(), WidenExtremes{}, ToExtremes{},
                       Extremes<T>{Limits::max(), Limits::lowest()});
  }
};

T* side_result(const Call& c) { return reinterpret_cast<T*>(c.to<char>() + kSideResultBytes); }

struct ArgMin {
  using Result = long long;
  static cudaError_t run(const Call& c) {
    return DeviceReduce::ArgMin(c.temp, c.temp_bytes, c.in(), side_result(c), c.to<Result>(), c.n, c.stream);
  }
};

struct ArgMax {
  using Result = long long;
  static cudaError_t run(const Call& c) {
    return DeviceReduce::ArgMax(c.temp, c.temp_bytes, c.in(), side_result(c), c.to<Result>(), c.n, c.stream);
  }
};

struct Mean {
  using Result = Floating<T>;
  static cudaError_t run(const Call& c) {
    const auto to = thrust::make_transform_output_iterator(c.to<Result>(), DivideBy<Result>{static_cast<Result>(c.n)});
    using Acc = cuda::std::conditional_t<sizeof(T) == 8, Floating<T>, Wide<T>>;
    return c.transform(c.in(), to, cuda::std::plus<>{}, Convert<Acc>{}, Acc{0});
  }
};

struct Variance {
  using Result = Floating<T>;
  static constexpr int values = 2;
  static cudaError_t run(const Call& c) {
    const auto to = thrust::make_transform_output_iterator(c.to<MeanVariance<Result>>(), ToMeanVariance{});
    // CUB 3.0 loads words of small elements, but a tile of such wide sums is no multiple of a word: through an iterator
    // it loads elements.
    if constexpr (sizeof(T) < 4)
      return c.transform(thrust::make_transform_iterator(c.in(), ToMoments<Result>{}), to, MergeMoments{},
                         cuda::std::identity{}, Moments<Result>{0, 0, 0});
    else return c.transform(c.in(), to, MergeMoments{}, ToMoments<Result>{}, Moments<Result>{0, 0, 0});
  }
};

struct SumOfSquares {
  using Result = Wide<T>;
  static cudaError_t run(const Call& c) {
    return c.transform(c.in(), c.to<Result>(), cuda::std::plus<>{}, Square<Result>{}, Result{0});
  }
};

struct L1Norm {
  using Result = Wide<T>;
  static cudaError_t run(const Call& c) {
    return c.transform(c.in(), c.to<Result>(), cuda::std::plus<>{}, Magnitude<Result>{}, Result{0});
  }
};

struct L2Norm {
  using Result = Floating<T>;
  using Acc = cuda::std::conditional_t<(sizeof(T) <= 2), Wide<T>, Floating<T>>;
  static cudaError_t run(const Call& c) {
    const auto to = thrust::make_transform_output_iterator(c.to<Result>(), SquareRoot<Result>{});
    return c.transform(c.in(), to, cuda::std::plus<>{}, Square<Acc>{}, Acc{0});
  }
};

struct MaxNorm {
  using Result = cuda::std::conditional_t<kIsFloating<T>, T, Wide<T>>;
  // Wide enough for |−128| of i8, and no wider.
  using Small = cuda::std::conditional_t<cuda::std::is_signed_v<T>, int, unsigned>;
  using Acc =
      cuda::std::conditional_t<!kIsFloating<T> && (sizeof(T) <= (cuda::std::is_signed_v<T> ? 2 : 4)), Small, Wide<T>>;
  static cudaError_t run(const Call& c) {
    const auto to = thrust::make_transform_output_iterator(c.to<Result>(), Convert<Result>{});
    return c.transform(c.in(), to, cuda::maximum<>{}, Magnitude<Acc>{}, Acc{0});
  }
};

template <class Element>  // of floats alone, and so not compiled for others
struct LogSumExp {
  using Result = Floating<Element>;
  static cudaError_t run(const Call& c) {
    const auto to = thrust::make_transform_output_iterator(c.to<Result>(), ToLogSumExp{});
    constexpr Result kLowest = cuda::std::numeric_limits<Result>::lowest();
    return c.transform(c.in(), to, MergeScaledSums{}, ToScaledSum<Result>{}, ScaledSum<Result>{kLowest, 0});
  }
};

struct Dot {
  using Result = Wide<T>;
  static cudaError_t run(const Call& c) {
    const auto pairs = thrust::make_zip_iterator(c.in(), static_cast<const T*>(c.inputs[1]));
    return c.transform(pairs, c.to<Result>(), cuda::std::plus<>{}, Product<Result>{}, Result{0});
  }
};

struct Any {
  using Result = bool;
  static cudaError_t run(const Call& c) {
    return c.transform(c.in(), c.to<bool>(), cuda::std::logical_or<>{}, IsNonZero<bool>{}, false);
  }
};

struct All {
  using Result = bool;
  static cudaError_t run(const Call& c) {
    return c.transform(c.in(), c.to<bool>(), cuda::std::logical_and<>{}, IsNonZero<bool>{}, true);
  }
};

struct CountNonZero {
  using Result = long long;
  static cudaError_t run(const Call& c) {
    return c.transform(c.in(), c.to<Result>(), cuda::std::plus<>{}, IsNonZero<Result>{}, Result{0});
  }
};

template <class Operation>
CubReduction row(std::string_view operation) {
  int values = 1;
  if constexpr (requires { Operation::values; }) values = Operation::values;
  return {operation, kName<T>, kName<typename Operation::Result>, values,
          [](void* temp, std::size_t& temp_bytes, const void* const* inputs, std::int64_t n, void* out,
             cudaStream_t stream) { return Operation::run({temp, temp_bytes, inputs, n, out, stream}); }};
}

std::vector<CubReduction> rows() {
  std::vector<CubReduction> table{
      row<Sum>("sum"),         row<Multiply>("product"),   row<Min>("min"),
      row<Max>("max"),         row<MinMax>("minmax"),      row<ArgMin>("argmin"),
      row<ArgMax>("argmax"),   row<Mean>("mean"),          row<Variance>("mean_variance"),
      row<L1Norm>("l1_norm"),  row<L2Norm>("l2_norm"),     row<SumOfSquares>("sum_of_squares"),
      row<MaxNorm>("max_norm"), row<Dot>("dot"),           row<Any>("any"),
      row<All>("all"),         row<CountNonZero>("count_nonzero"),
  };
  if constexpr (kIsFloating<T>) table.push_back(row<LogSumExp<T>>("logsumexp"));
  return table;
}

}  // namespace

std::span<const CubReduction> HONE_TABLE() {
  static const std::vector<CubReduction> table = rows();
  return table;
}

#ifdef HONE_DEFINE_CUB_VERSION
int cub_version() { return CUB_VERSION; }
#endif

}  // namespace hone::benchmarks
