#include "runtime/families/row_chunks.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace hone {

std::int64_t best_chunks(std::int64_t blocks, std::int64_t lines, std::int64_t most) {
  constexpr std::int64_t kMostRounds = 8;
  constexpr double kWorthwhile = 0.02;
  std::int64_t best = 1;
  double best_use = 0;
  for (std::int64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
    const std::int64_t chunks = std::clamp<std::int64_t>(rounds * blocks / lines, 1, most);
    const std::int64_t items = chunks * lines;
    const double use = static_cast<double>(items) / static_cast<double>(divide_up(items, blocks) * blocks);
    if (use <= best_use + kWorthwhile) continue;
    best = chunks;
    best_use = use;
  }
  return best;
}

void RowChunks::add_to(Unit& unit, std::int32_t packs_per_thread, std::int32_t block_threads,
                       MinBlocks min_blocks) const {
  const auto add_entry = [&](std::string_view body) {
    unit.entries.push_back(kernel_entry(body, block_threads, min_blocks));
  };
  if (is_pipeline()) {
    unit.source += fmt::format(
        "#include \"row_pipeline.cuh\"\n"
        "using Chunks = hone::RowPipeline<Kernel, {}>;\n"
        "static_assert(Chunks::kRing == {}, \"host and device disagree\");\n",
        packs_per_thread, kPipelinedRows);
    add_entry("Chunks::run");
  } else {
    unit.source += fmt::format(
        "#include \"row_chunks.cuh\"\n"
        "using Chunks = hone::RowChunks<Kernel, {}>;\n",
        packs_per_thread);
    add_entry("Chunks::publish");
    add_entry("Chunks::write");
  }
}

}  // namespace hone
