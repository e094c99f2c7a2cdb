// The arguments of the kernels of segmented_reduce.cuh, as host and device see them.
#pragma once

namespace hone {

/// Segments in CSR form: segment s is in[offsets[s] … offsets[s + 1]).
struct SegmentsArguments {
  const void* in;
  const void* offsets;
  void* out;
  void* workspace;
  unsigned long long segments;
  unsigned blocks;  ///< of the first kernel, for the second
};

}  // namespace hone
