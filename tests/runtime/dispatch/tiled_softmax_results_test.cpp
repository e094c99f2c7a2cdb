// Reproducible softmax of short rows in tiles (canonical_softmax_tiles.cuh), on a real device. Policies are launched
// directly.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/runtime/support/softmax_policies.h"
#include "tests/support/share.h"

namespace hone {
namespace {

class TiledSoftmaxResults : public SoftmaxPolicyTest {
 protected:
  static std::string tiles_of(int lanes, int threads = 128) {
    return fmt::format("scope=warp threads_per_row={} block_threads={} staging=shared min_blocks=unset", lanes, threads);
  }
};

/// Lanes have a word of a row and many; rows end within a word; threads have rows to themselves, with code for each
/// number of columns and without.
TEST_F(TiledSoftmaxResults, RowsAreRight) {
  struct Case {
    DType dtype;
    int lanes;
    std::int64_t columns;
  };
  const Case cases[]{{DType::f16, 1, 7},   {DType::bf16, 1, 17}, {DType::f32, 1, 1},  {DType::f64, 1, 11},
                     {DType::f16, 2, 31},  {DType::f16, 4, 49},  {DType::f32, 4, 63}, {DType::bf16, 8, 131},
                     {DType::f64, 8, 65},  {DType::f16, 16, 33}, {DType::f32, 16, 255},
                     {DType::f16, 32, 701}};
  std::size_t number = 0;
  for (const auto& [dtype, lanes, columns] : cases) {
    const std::size_t i = number++;
    if (!test::in_share(i)) continue;
    const std::int64_t rows = static_cast<std::int64_t>(i % 5) * 97 + 3;
    verify_reproducible({.dtype = dtype}, SoftmaxShape::rows(rows, columns), tiles_of(lanes), i % 3 == 0);
    verify_reproducible({.dtype = dtype}, SoftmaxShape::rows(rows, columns + 1, {columns + 2, columns + 4}),
                        tiles_of(lanes), i % 3 == 0);
  }
}

/// Results are wider than elements, and begin within other words than these.
TEST_F(TiledSoftmaxResults, ResultsMayBeOutOfStep) {
  for (const std::int64_t columns : {7, 50, 51}) {
    verify_reproducible({.dtype = DType::f16, .result = DType::f32}, SoftmaxShape::rows(301, columns),
                        tiles_of(columns == 7 ? 1 : 4));
    verify_reproducible({.dtype = DType::bf16}, SoftmaxShape::rows(301, columns, {columns, columns + 1}), tiles_of(8));
  }
}

/// Some rows are summed again, among others. In place.
TEST_F(TiledSoftmaxResults, RowsMayHaveAnyWeights) {
  for (const double scale : {300.0, -300.0, -1.0})
    for (const int lanes : {1, 4})
      verify_reproducible({.dtype = DType::f16, .scale = scale}, SoftmaxShape::rows(111, lanes == 1 ? 9 : 49),
                          tiles_of(lanes), scale == -300);
  for (const auto& [lanes, columns] : {std::pair{1, 11}, {1, 15}, {4, 53}, {8, 133}}) {
    const std::int64_t rows = 375;
    std::vector<float> in = random_values<float>(static_cast<std::size_t>(rows * columns));
    for (std::int64_t row = 0; row < rows; ++row) {
      const float largest = row % 3 == 1 ? 200.0f : row % 7 == 2 ? -90.0f : 0.0f;
      for (std::int64_t i = 0; i < columns; ++i) in[static_cast<std::size_t>(row * columns + i)] += largest;
    }
    in[static_cast<std::size_t>(5 * columns)] = std::numeric_limits<float>::quiet_NaN();
    in[static_cast<std::size_t>(8 * columns + 1)] = -std::numeric_limits<float>::infinity();
    const Problem problem =
        softmax_problem({.numerics = Numerics::reproducible}, SoftmaxShape::rows(rows, columns));
    expect_bits_of_two_kernels(problem, in, tiles_of(lanes), 4);
  }
}

}  // namespace
}  // namespace hone
