// The policies of the transpose family, and what they make of a problem.
#pragma once

#include <cstdint>

#include <hone/transpose_spec.h>

#include "runtime/families/work_division.h"

namespace hone {

/// Every parameter is a choice of transpose.cuh or transpose_shifted.cuh.
struct TransposePolicy {
  enum class Vector : std::int32_t { widest, narrow };       ///< that the alignment allows, or a fourth of it
  enum class Aspect : std::int32_t { square, tall, wide };   ///< of the tiles
  enum class Order : std::int32_t { rows, columns, groups }; ///< in which tiles follow each other

  Staging staging = Staging::shared;  ///< shifted: by transpose_shifted.cuh
  Vector vector = Vector::widest;
  std::int32_t tile_kib = 16;
  Aspect aspect = Aspect::square;
  std::int32_t block_threads = 256;
  Order order = Order::rows;

  static const ParameterSpace& space();
};

/// The tile that a policy has for a class: it depends on which sides of the matrices are short.
struct TransposeTile : TransposePolicy {
  bool in_place;
  bool shifted;  ///< by transpose_shifted.cuh
  int element_bytes;
  int vector_bytes, widest_bytes;  ///< of a load, and of the widest that the sides and the alignment allow
  int tile_rows, tile_columns;     ///< of the input
  bool is_narrow, is_low;          ///< the matrix has fewer columns, or rows, than a tile of this aspect
  bool is_small;                   ///< it is smaller than the tile

  TransposeTile(const ProblemClass& problem_class, const Policy& of);

  /// Input rows before a tile's first one that its block loads as well, so that its pieces of output rows start at
  /// sectors.
  int step_rows() const { return shifted ? 32 / element_bytes : 0; }
  std::int64_t tile_bytes() const { return std::int64_t{element_bytes} * tile_rows * tile_columns; }
  int loads_per_thread() const;  ///< of vectors, before it uses any
  /// Returns the shared memory of a block: with the padding, and of two tiles where they change places.
  std::int64_t smem_bytes() const;
  /// The smallest tile that every thread of the smallest block has a part in.
  int smallest_kib() const;
};

}  // namespace hone
