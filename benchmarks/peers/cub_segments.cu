// The table of cub_segments.h. CUB 3.5 is told the length of segments of one length. CUB 3.0 has no interface for that:
// iterators that compute the offsets are what its documentation has a user write.
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/std/functional>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <array>

#include "benchmarks/peers/cub_functors.cuh"
#include "benchmarks/peers/cub_segments.h"

namespace hone::benchmarks {
namespace {

using cub::DeviceSegmentedReduce;

#if CUB_VERSION < 300500
struct TimesLength {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t segment) const { return segment * length; }
};
#endif

/// The arguments of every call; between `segments` and `stream` come two iterators over offsets, or a length.
struct Call {
  void* temp;
  std::size_t& temp_bytes;
  const void* in;
  std::int64_t segments;
  void* out;
  cudaStream_t stream;
};

struct Sum {
  template <class T, class... Bounds>
  static cudaError_t run(const Call& c, Bounds... bounds) {
    // An operator of the wide type and a start in it: elements are widened before they are added.
    return DeviceSegmentedReduce::Reduce(c.temp, c.temp_bytes, static_cast<const T*>(c.in),
                                         static_cast<Wide<T>*>(c.out), c.segments, bounds...,
                                         cuda::std::plus<Wide<T>>{}, Wide<T>{0}, c.stream);
  }
};

struct Max {
  template <class T, class... Bounds>
  static cudaError_t run(const Call& c, Bounds... bounds) {
    return DeviceSegmentedReduce::Max(c.temp, c.temp_bytes, static_cast<const T*>(c.in), static_cast<T*>(c.out),
                                      c.segments, bounds..., c.stream);
  }
};

struct Min {
  template <class T, class... Bounds>
  static cudaError_t run(const Call& c, Bounds... bounds) {
    return DeviceSegmentedReduce::Min(c.temp, c.temp_bytes, static_cast<const T*>(c.in), static_cast<T*>(c.out),
                                      c.segments, bounds..., c.stream);
  }
};

template <class Operation, class T>
CubSegments row(std::string_view operation) {
  return {operation, kName<T>,
          [](void* temp, std::size_t& temp_bytes, const void* in, std::int64_t segments, const std::int32_t* offsets,
             std::int64_t length, void* out, cudaStream_t stream) {
            const Call call{temp, temp_bytes, in, segments, out, stream};
            if (offsets) return Operation::template run<T>(call, offsets, offsets + 1);
#if CUB_VERSION >= 300500
            return Operation::template run<T>(call, static_cast<int>(length));
#else
            const auto begin =
                thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0), TimesLength{length});
            return Operation::template run<T>(call, begin, begin + 1);
#endif
          }};
}

}  // namespace

std::span<const CubSegments> cub_segments() {
  static const std::array table{row<Sum, float>("sum"), row<Max, float>("max"), row<Min, float>("min"),
                                row<Sum, __half>("sum"), row<Max, __half>("max"), row<Min, __half>("min")};
  return table;
}

}  // namespace hone::benchmarks
