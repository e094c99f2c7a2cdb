// RowResults: the results of rows that groups of lanes reduce in the canonical tree.
#pragma once

#include "axis_arguments.h"
#include "canonical_tree.cuh"

namespace hone {

/// Row r has its kValues results at out[r · kValues].
template <class Op, class Out, unsigned kValues>
__device__ void write_row(typename Op::State state, const RowsArguments& all, unsigned long long row) {
  Op::write(state, static_cast<typename Op::Index>(all.columns), static_cast<Out*>(all.out) + row * kValues);
}

/// Writes the results of rows that groups of kLanes lanes reduce, all lanes of a warp at the same time. Results that
/// take many instructions are written once each lane has one: a logarithm takes a warp as long for one row as for 32.
template <class Op, class Out, unsigned kValues, unsigned kLanes>
class RowResults {
 public:
  using State = typename Op::State;

  __device__ explicit RowResults(const RowsArguments& all) : all_(all) {}

  /// All lanes of the group have the State; is_row: the row is there.
  __device__ void add(State state, unsigned long long row, bool is_row) {
    if constexpr (kKeeps) {
      if (lane() == count_) {
        state_ = state;
        row_ = is_row ? row : kNone;
      }
      if (++count_ == kLanes) flush();
    } else {
      if (lane() == 0 && is_row) write_row<Op, Out, kValues>(state, all_, row);
    }
  }
  __device__ void flush() {
    if constexpr (kKeeps) {
      if (lane() < count_ && row_ != kNone) write_row<Op, Out, kValues>(state_, all_, row_);
      count_ = 0;
    }
  }

 private:
  static constexpr bool kKeeps = kIsByChunk<Op> && kLanes > 1;
  static constexpr unsigned long long kNone = ~0ull;
  static __device__ unsigned lane() { return threadIdx.x % kLanes; }

  const RowsArguments& all_;
  State state_ = Op::absent();
  unsigned long long row_ = kNone;
  unsigned count_ = 0;
};

}  // namespace hone
