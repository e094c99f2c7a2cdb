// The arguments of the kernels of combine_ranks.cuh and record_partial.cuh, as host and device see them.
#pragma once

namespace hone {

/// Partials of all ranks. A rank's block has its values, then indices (argmin, argmax), then its number of elements.
struct CombineArguments {
  const void* partials;
  void* out;
  unsigned long long block_bytes;  ///< from the block of one rank to that of the next
  unsigned long long index_at, count_at;  ///< bytes from the beginning of a block
  unsigned long long rows;
  unsigned ranks;
};

/// The arguments of the kernel that adds to the block of a rank.
struct RecordArguments {
  const void* in;             ///< rows of `columns` elements
  const long long* found;     ///< indices that the local reduction found
  void* values;
  long long* indices;
  long long* count;
  unsigned long long rows, columns;
  long long pitch;  ///< in elements
};

}  // namespace hone
