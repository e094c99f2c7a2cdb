// The table of cub_segments.h. CUB 3.0 has no interface for segments of one length: iterators that compute the offsets
// are what its documentation has a user write.
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

struct TimesLength {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t segment) const { return segment * length; }
};

/// The arguments of every call.
struct Call {
  void* temp;
  std::size_t& temp_bytes;
  const void* in;
  std::int64_t segments;
  void* out;
  cudaStream_t stream;
};

struct Sum {
  template <class T, class Offsets>
  static cudaError_t run(const Call& c, Offsets begin, Offsets end) {
    // An operator of the wide type and a start in it: elements are widened before they are added.
    return DeviceSegmentedReduce::Reduce(c.temp, c.temp_bytes, static_cast<const T*>(c.in),
                                         static_cast<Wide<T>*>(c.out), c.segments, begin, end,
                                         cuda::std::plus<Wide<T>>{}, Wide<T>{0}, c.stream);
  }
};

struct Max {
  template <class T, class Offsets>
  static cudaError_t run(const Call& c, Offsets begin, Offsets end) {
    return DeviceSegmentedReduce::Max(c.temp, c.temp_bytes, static_cast<const T*>(c.in), static_cast<T*>(c.out),
                                      c.segments, begin, end, c.stream);
  }
};

struct Min {
  template <class T, class Offsets>
  static cudaError_t run(const Call& c, Offsets begin, Offsets end) {
    return DeviceSegmentedReduce::Min(c.temp, c.temp_bytes, static_cast<const T*>(c.in), static_cast<T*>(c.out),
                                      c.segments, begin, end, c.stream);
  }
};

template <class Operation, class T>
CubSegments row(std::string_view operation) {
  return {operation, kName<T>,
          [](void* temp, std::size_t& temp_bytes, const void* in, std::int64_t segments, const std::int32_t* offsets,
             std::int64_t length, void* out, cudaStream_t stream) {
            const Call call{temp, temp_bytes, in, segments, out, stream};
            if (offsets) return Operation::template run<T>(call, offsets, offsets + 1);
            const auto begin =
                thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0), TimesLength{length});
            return Operation::template run<T>(call, begin, begin + 1);
          }};
}

}  // namespace

std::span<const CubSegments> cub_segments() {
  static const std::array table{row<Sum, float>("sum"), row<Max, float>("max"), row<Min, float>("min"),
                                row<Sum, __half>("sum"), row<Max, __half>("max"), row<Min, __half>("min")};
  return table;
}

}  // namespace hone::benchmarks
