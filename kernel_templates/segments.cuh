// The arrays of all segmented reductions.
#pragma once

#include "pack_range.cuh"
#include "segments_arguments.h"

namespace hone {

inline constexpr unsigned kPackBytes = 16;

/// The arrays of a call, in CSR form: segment s is in[offsets[s] … offsets[s + 1]). It has kOutputs contiguous results.
template <class Op, class Offset, class Out, unsigned kOutputs>
struct Segments {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  const In* in;
  const Offset* offsets;
  Index count;
  Out* out;

  explicit __device__ Segments(const SegmentsArguments& arguments)
      : in(static_cast<const In*>(arguments.in)),
        offsets(static_cast<const Offset*>(arguments.offsets)),
        count(static_cast<Index>(arguments.segments)),
        out(static_cast<Out*>(arguments.out)) {}

  __device__ Index offset(Index i) const { return static_cast<Index>(offsets[i]); }

  /// The elements [first, last) of the segment that starts at `begin`.
  __device__ auto range(Index first, Index last, Index begin) const {
    using Source = OneArray<In, kPackBytes / sizeof(In)>;
    return PackRange<Source, Index>::of({in + first}, last - first, first - begin);
  }

  /// Writes the results of a segment of n elements.
  __device__ void write(Index segment, Index n, State state) const { Op::write(state, n, out + segment * kOutputs); }
};

}  // namespace hone
