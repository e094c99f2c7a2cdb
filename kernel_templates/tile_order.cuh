// The order in which the grid goes through the tiles of a batch of matrices.
#pragma once

#include "transpose_arguments.h"

namespace hone {

/// The order of tiles: along rows of the input or of the output, or groups of kGroupRows rows of tiles by columns.
enum class TileOrder { rows, columns, groups };

inline constexpr unsigned kGroupRows = 8;

/// A batch of matrices of rows × columns elements, one after the other. Pitches are in elements.
template <class T, class Index>
struct Matrices {
  const TransposeArguments& all;
  const T* in = static_cast<const T*>(all.in);
  T* out = static_cast<T*>(all.out);
  Index batch = static_cast<Index>(all.batch);
  Index rows = static_cast<Index>(all.rows), columns = static_cast<Index>(all.columns);
  long long in_pitch = all.in_pitch, out_pitch = all.out_pitch;

  /// Where an element of the input, or of the output, is: its distance from the first one, in elements.
  __device__ long long in_offset(Index matrix, Index row, Index column) const {
    return offset(matrix, rows, row, in_pitch) + static_cast<long long>(column);
  }
  __device__ long long out_offset(Index matrix, Index row, Index column) const {
    return offset(matrix, columns, row, out_pitch) + static_cast<long long>(column);
  }
  static __device__ long long offset(Index matrix, Index of_matrix, Index row, long long pitch) {
    return (static_cast<long long>(matrix) * static_cast<long long>(of_matrix) + static_cast<long long>(row)) * pitch;
  }

  /// The bytes from the start of the input to the end of its last row.
  __device__ long long in_bytes() const {
    return in_offset(batch - 1, rows - 1, columns) * static_cast<long long>(sizeof(T));
  }

  /// The part of an address that alignments are about.
  static __device__ unsigned low_bits(const void* pointer) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer));
  }
};

/// The position of a tile: the index of its matrix, and its row and column in units of tiles.
template <class Index>
struct TilePosition {
  Index matrix, row, column;
};

/// The position of tile `index`, counted over all matrices.
template <TileOrder kOrder, class Index>
__device__ TilePosition<Index> tile_position(Index tile_rows, Index tile_columns, Index index) {
  Index matrix = 0;
  const Index of_matrix = tile_rows * tile_columns;
  if (index >= of_matrix) {
    matrix = index / of_matrix;
    index -= matrix * of_matrix;
  }
  if constexpr (kOrder == TileOrder::rows) {
    const Index row = index / tile_columns;
    return {matrix, row, index - row * tile_columns};
  } else if constexpr (kOrder == TileOrder::columns) {
    const Index column = index / tile_rows;
    return {matrix, index - column * tile_rows, column};
  } else {
    const Index of_group = kGroupRows * tile_columns;
    const Index group = index / of_group;
    const Index first = group * kGroupRows;
    const Index rows = tile_rows - first < kGroupRows ? tile_rows - first : kGroupRows;
    index -= group * of_group;
    const Index column = index / rows;
    return {matrix, first + (index - column * rows), column};
  }
}

}  // namespace hone
