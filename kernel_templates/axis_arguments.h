// The arguments of the kernels that reduce rows and columns, as host and device see them. A pitch is a leading
// dimension, in elements.
#pragma once

namespace hone {

/// reduce_rows.cuh
struct RowsArguments {
  const void* in;
  void* out;
  void* workspace;
  unsigned long long rows, columns, pitch;
  unsigned parts;           ///< blocks per row; of canonical_row_blocks.cuh: spans
  unsigned run_levels = 0;  ///< as in ReduceArguments
};

/// reduce_columns.cuh. Values derived from the extents are passed along: kernels of short columns would compute them
/// again at each use, because of register pressure.
struct ColumnsArguments {
  const void* in;
  void* out;
  void* workspace;
  unsigned long long outer, reduced, inner, pitch;
  unsigned long long slice_pitch;  ///< reduced · pitch
  unsigned long long rows;         ///< ⌈reduced / folds⌉
  unsigned long long slice_tiles;  ///< 1 if rows are folded, else ⌈inner / tile_columns⌉
  unsigned tile_columns;           ///< whole packs, at most kTileColumns
  unsigned folds;
  unsigned parts;  ///< blocks per tile; if there are several, outer · tiles · parts fits 32 bits
  unsigned run_levels = 0;  ///< of canonical_columns.cuh: a part has 2^run_levels chunks;
  unsigned cut_levels = 0;  ///< or, if that is 0, every 2^cut_levels-th row of one
};

/// staged_reduce.cuh
struct StagedArguments {
  const void* in;
  void* out;
  unsigned long long slices;
  unsigned reduced, inner;
  unsigned slices_per_tile;
};

/// partials.cuh
struct PartsArguments {
  const void* workspace;
  void* out;
  unsigned long long reduced;  ///< elements of an output
  unsigned parts;              ///< partials per output
  unsigned outputs;
};

}  // namespace hone
