// The arguments of the kernels of copy.cuh, as host and device see them.
#pragma once

namespace hone {

struct CopyArguments {
  const void* in;
  void* out;
  unsigned long long rows, columns;
  unsigned long long windows;     ///< of a row, at most
  long long in_pitch, out_pitch;  ///< in elements
};

}  // namespace hone
