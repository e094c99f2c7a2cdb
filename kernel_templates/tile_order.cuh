// Which tile of a batch of matrices is the next.
#pragma once

namespace hone {

/// In which order blocks take the tiles: along the input's rows, along the output's, or in groups of kGroupRows rows of
/// tiles, each column by column.
enum class TileOrder { rows, columns, groups };

inline constexpr unsigned kGroupRows = 8;

/// Matrices of rows × columns elements, one after the other; rows are `pitch` elements apart.
template <class T, class Index>
struct Matrices {
  const T* in;
  T* out;
  Index batch, rows, columns;
  long long in_pitch, out_pitch;
};

/// A tile: the number of its matrix, and its row and column among the tiles of that.
template <class Index>
struct TilePosition {
  Index matrix, row, column;
};

/// The tile with number `index`, of all matrices together.
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
