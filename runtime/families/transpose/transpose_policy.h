// TransposePolicy: the policies of the transpose family.
#pragma once

#include <cstdint>

#include "runtime/families/work_division.h"

namespace hone {

/// Every parameter is a choice of transpose.cuh, transpose_shifted.cuh or transpose_strips.cuh.
struct TransposePolicy {
  enum class Vector : std::int32_t { widest, narrow };       ///< that the alignment allows, or a fourth of it
  enum class Aspect : std::int32_t { square, tall, wide };   ///< of the tiles
  enum class Order : std::int32_t { rows, columns, groups }; ///< in which tiles follow each other

  Staging staging = Staging::shared;  ///< shifted, strips: by transpose_shifted.cuh, transpose_strips.cuh
  Vector vector = Vector::widest;
  std::int32_t tile_kib = 16;
  Aspect aspect = Aspect::square;
  std::int32_t block_threads = 256;
  Order order = Order::rows;

  static const ParameterSpace& space();
};

}  // namespace hone
