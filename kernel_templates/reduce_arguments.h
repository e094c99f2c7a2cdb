// The arguments of the kernels of reduce.cuh and serial.cuh, as host and device see them.
#pragma once

namespace hone {

/// A kernel reads what it needs.
struct ReduceArguments {
  static constexpr unsigned kMostOutputs = 8;

  const void* in[2];  ///< one array of n elements, or two
  unsigned long long n;
  void* workspace;
  void* out[kMostOutputs];
  unsigned partials;        ///< in the workspace, for the second kernel; of canonical_reduce.cuh: spans
  unsigned run_levels = 0;  ///< of canonical_reduce.cuh: a warp reduces 2^run_levels batches of chunks to one value
};

}  // namespace hone
