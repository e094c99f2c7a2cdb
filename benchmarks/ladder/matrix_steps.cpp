#include "benchmarks/ladder/matrix_steps.h"

#include <algorithm>
#include <string>

#include "benchmarks/common/embedded.h"

namespace hone::benchmarks {
namespace {

constexpr MatrixStep kTransposeSteps[] = {
    {MatrixLadder::transpose, "coalesced_read", "lanes read along rows; each writes a row of the output"},
    {MatrixLadder::transpose, "coalesced_write",
     "lanes write along rows; each reads a row of the input: caches forgive that more"},
    {MatrixLadder::transpose, "read_only_load", "the same through the read-only path"},
    {MatrixLadder::transpose, "shared_tile", "tiles of 32 × 32 in shared memory: both sides are coalesced"},
    {MatrixLadder::transpose, "padded_tile", "a column of padding: no two lanes meet in a bank"},
    {MatrixLadder::transpose, "swizzled_tile", "columns exchanged by their row instead: no padding, and no conflicts"},
};

constexpr MatrixStep kSoftmaxSteps[] = {
    {MatrixLadder::softmax, "softmax_three_kernels", "a kernel each for the largest, the sum and the quotients"},
    {MatrixLadder::softmax, "softmax_one_kernel", "all in one: what was just read comes from a cache"},
    {MatrixLadder::softmax, "softmax_online", "largest and sum in one pass over the row"},
};

constexpr MatrixStep kAccessSteps[] = {
    {MatrixLadder::access, "in_order", "neighbouring lanes read neighbouring elements"},
    {MatrixLadder::access, "permuted", "the same 32 elements in another order: the same sectors"},
    {MatrixLadder::access, "offset", "one element further: a fifth sector, which the neighbour needs, too"},
    {MatrixLadder::access, "strided", "32 elements apart: 32 sectors for 128 bytes"},
};

constexpr std::int64_t kTile = 32, kBlockThreads = 256;  // tile_place.cuh, row_block.cuh, access.cuh

bool has_three_kernels(const MatrixStep& step) { return step.name == "softmax_three_kernels"; }

std::int64_t blocks_of(const MatrixStep& step, std::int64_t rows, std::int64_t columns) {
  const auto pieces = [](std::int64_t count, std::int64_t size) { return (count + size - 1) / size; };
  switch (step.ladder) {
    case MatrixLadder::transpose:
      return pieces(rows, kTile) * pieces(columns, kTile);
    case MatrixLadder::softmax:
      return rows;
    default:
      return pieces(rows * columns, kBlockThreads);
  }
}

}  // namespace

std::span<const MatrixStep> matrix_steps(MatrixLadder ladder) {
  if (ladder == MatrixLadder::transpose) return kTransposeSteps;
  return ladder == MatrixLadder::softmax ? std::span<const MatrixStep>(kSoftmaxSteps) : kAccessSteps;
}

Unit matrix_unit(const MatrixStep& step) {
  const std::span<const SourceFile> files = embedded::ladder_kernels();
  const std::string name(step.name);
  Unit unit{.name = "ladder " + name,
            .source = "#include \"" + name + ".cu\"\n",
            .headers = {files.begin(), files.end()},
            .entries = {name}};
  if (has_three_kernels(step))
    for (const char* part : {"_sum", "_divide"}) unit.entries.push_back(name + part);
  return unit;
}

std::size_t matrix_scratch_bytes(const MatrixStep& step, std::int64_t rows) {
  return step.ladder == MatrixLadder::softmax ? 2 * static_cast<std::size_t>(rows) * sizeof(float) : sizeof(float);
}

std::vector<Launch> matrix_launches(const MatrixStep& step, const MatrixBuffers& buffers, std::int64_t rows,
                                    std::int64_t columns) {
  Launch launch;
  launch.grid.x = static_cast<unsigned>(std::max<std::int64_t>(blocks_of(step, rows, columns), 1));
  launch.block.x = static_cast<unsigned>(kBlockThreads);
  launch.arguments.push(buffers.in);
  launch.arguments.push(buffers.out);
  switch (step.ladder) {
    case MatrixLadder::transpose:
      launch.arguments.push(static_cast<unsigned>(rows));
      launch.arguments.push(static_cast<unsigned>(columns));
      break;
    case MatrixLadder::softmax:
      launch.arguments.push(buffers.scratch);
      launch.arguments.push(buffers.scratch + rows);
      launch.arguments.push(static_cast<unsigned>(columns));
      break;
    case MatrixLadder::access:
      launch.arguments.push(static_cast<unsigned>(rows * columns));
      break;
  }
  std::vector<Launch> launches(has_three_kernels(step) ? 3 : 1, launch);
  for (std::size_t i = 0; i < launches.size(); ++i) launches[i].entry = static_cast<int>(i);
  return launches;
}

}  // namespace hone::benchmarks
