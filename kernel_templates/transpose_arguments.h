// The arguments of the kernels of transpose.cuh and transpose_shifted.cuh, as host and device see them.
#pragma once

namespace hone {

struct TransposeArguments {
  const void* in;
  void* out;
  unsigned long long batch;
  unsigned long long rows, columns;  ///< of a matrix of the input
  long long in_pitch, out_pitch;     ///< in elements
};

}  // namespace hone
