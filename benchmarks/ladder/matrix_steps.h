// The steps of the ladders over matrices: transposing, softmax of rows, and the patterns of access, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone::benchmarks {

enum class MatrixLadder {
  transpose,
  softmax,  ///< of each row
  access,   ///< copies of all elements, in orders of their own
};

struct MatrixStep {
  MatrixLadder ladder;
  std::string_view name;     ///< of its file, without .cu, and of its first kernel
  std::string_view teaches;  ///< what it changes in the step before
};

std::span<const MatrixStep> matrix_steps(MatrixLadder ladder);

Unit matrix_unit(const MatrixStep& step);

/// The memory of a call. `scratch` holds matrix_scratch_bytes().
struct MatrixBuffers {
  const float* in;
  float* out;
  float* scratch;
};

std::size_t matrix_scratch_bytes(const MatrixStep& step, std::int64_t rows);

/// The launches of a call on rows × columns floats, at most kMostLadderElements of them.
std::vector<Launch> matrix_launches(const MatrixStep& step, const MatrixBuffers& buffers, std::int64_t rows,
                                    std::int64_t columns);

}  // namespace hone::benchmarks
