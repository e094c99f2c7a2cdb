// The operations that reduce arrays: an identity and an associative combination, on the accumulator type.
//
// Min and Max return NaN as soon as either side is NaN, as NumPy and PyTorch do. Integer sums wrap.
#pragma once

namespace hone {

/// Largest and smallest value of an accumulator type; infinities where the type has them.
template <class T>
struct Bounds;

template <>
struct Bounds<float> {
  static __device__ float highest() { return __int_as_float(0x7f800000); }
  static __device__ float lowest() { return -highest(); }
};

template <>
struct Bounds<double> {
  static __device__ double highest() { return __longlong_as_double(0x7ff0000000000000LL); }
  static __device__ double lowest() { return -highest(); }
};

template <>
struct Bounds<int> {
  static __device__ int highest() { return 0x7fffffff; }
  static __device__ int lowest() { return -highest() - 1; }
};

template <>
struct Bounds<long long> {
  static __device__ long long highest() { return 0x7fffffffffffffffLL; }
  static __device__ long long lowest() { return -highest() - 1; }
};

template <class Acc>
struct Sum {
  static __device__ Acc identity() { return Acc(0); }
  static __device__ Acc combine(Acc a, Acc b) { return a + b; }
};

template <>
struct Sum<long long> {
  static __device__ long long identity() { return 0; }
  static __device__ long long combine(long long a, long long b) {
    return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
  }
};

template <class Acc>
struct Min {
  static __device__ Acc identity() { return Bounds<Acc>::highest(); }
  // a != a holds for NaN alone; where b is NaN the comparison fails and b is returned.
  static __device__ Acc combine(Acc a, Acc b) { return a < b || a != a ? a : b; }
};

template <class Acc>
struct Max {
  static __device__ Acc identity() { return Bounds<Acc>::lowest(); }
  static __device__ Acc combine(Acc a, Acc b) { return a > b || a != a ? a : b; }
};

}  // namespace hone
