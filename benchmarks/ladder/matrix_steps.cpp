#include "benchmarks/ladder/matrix_steps.h"

#include <string>

#include "benchmarks/common/embedded.h"

namespace hone::benchmarks {
namespace {

constexpr TransposeStep kTransposeSteps[] = {
    {"coalesced_read", "lanes read along rows; each writes a row of the output"},
    {"coalesced_write", "lanes write along rows; each reads a row of the input: caches forgive that more"},
    {"read_only_load", "the same through the read-only path"},
    {"shared_tile", "tiles of 32 × 32 in shared memory: both sides are coalesced"},
    {"padded_tile", "a column of padding: no two lanes meet in a bank"},
};

constexpr std::int64_t kTile = 32, kTileThreads = 256;  // tile_place.cuh

}  // namespace

std::span<const TransposeStep> transpose_steps() { return kTransposeSteps; }

Unit transpose_unit(const TransposeStep& step) {
  const std::span<const SourceFile> files = embedded::ladder_kernels();
  const std::string name(step.name);
  return {.name = "ladder " + name,
          .source = "#include \"" + name + ".cu\"\n",
          .headers = {files.begin(), files.end()},
          .entries = {name}};
}

Launch transpose_launch(const float* in, float* out, std::int64_t rows, std::int64_t columns) {
  Launch launch;
  launch.grid.x = static_cast<unsigned>(((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile));
  launch.block.x = static_cast<unsigned>(kTileThreads);
  launch.arguments.push(in);
  launch.arguments.push(out);
  launch.arguments.push(static_cast<unsigned>(rows));
  launch.arguments.push(static_cast<unsigned>(columns));
  return launch;
}

}  // namespace hone::benchmarks
