#include "benchmarks/ladder/steps.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <hone/sdk/gpu_compiler.h>

#include "benchmarks/common/embedded.h"

namespace hone::benchmarks {
namespace {

using enum LadderFinish;

constexpr LadderStep kSteps[] = {
    {"global_tree", "global_tree", levels, LadderGrid::elements,
     "a tree in global memory, level by level; launched again on its own block sums"},
    {"shared_tree", "shared_tree", levels, LadderGrid::elements,
     "the tree in shared memory: the input is read once, only block sums are written"},
    {"warp_sync", "warp_sync", levels, LadderGrid::elements,
     "the last six levels in one warp: no barriers of the whole block"},
    {"shuffle", "shuffle", levels, LadderGrid::elements,
     "values move between registers: one barrier and 32 bytes of shared memory are left"},
    {.name = "cooperative_groups",
     .file = "group_reduce",
     .finish = levels,
     .grid = LadderGrid::elements,
     .teaches = "the shuffles by reduce() of cooperative groups, whose tiles know who takes part",
     .cuda_header = "cooperative_groups.h"},
    {"shuffle_atomic", "shuffle_atomic", atomic, LadderGrid::elements,
     "one launch: block sums meet in an atomic, a queue of one addition per 256 elements"},
    {"chunks", "contiguous_chunks", atomic, LadderGrid::wave,
     "few blocks, many elements a thread, side by side: the lanes of a warp read far apart"},
    {"grid_of_1024", "grid_stride", atomic, LadderGrid::thousand,
     "a grid-stride loop: lanes read side by side; 1024 blocks, whose last wave is not full"},
    {"grid_stride", "grid_stride", atomic, LadderGrid::wave,
     "the same with exactly the blocks that are resident at once"},
    {"cas_max", "cas_max", atomic, LadderGrid::wave,
     "the largest element instead: no float atomicMax, so a loop of atomicCAS", true},
    {"vector_loads", "vector_loads", atomic, LadderGrid::wave, "16-byte loads, four in flight per thread"},
    {"two_kernels", "two_kernels", two_kernels, LadderGrid::wave,
     "a second kernel instead of atomics and zeroing: the same bits in every run"},
    {"last_block", "last_block", last_block, LadderGrid::wave,
     "one launch: the last block to arrive adds up the block sums"},
};

constexpr std::size_t kTicketBytes = 128;
constexpr std::int64_t kThousand = 1024;

std::int64_t blocks_for(std::int64_t elements, std::int64_t per_block) {
  return std::max<std::int64_t>(1, (elements + per_block - 1) / per_block);
}

bool works_in_a_copy(const LadderStep& step) { return step.name == "global_tree"; }

/// Where things lie in the scratch memory: the ticket, two arrays of block sums that alternate, the copy that
/// global_tree works in, of that step alone.
struct Scratch {
  std::byte* ticket;
  float* sums[2];
  float* tree;

  Scratch(std::byte* begin, std::int64_t n)
      : ticket(begin), sums{reinterpret_cast<float*>(begin + kTicketBytes), nullptr}, tree(nullptr) {
    sums[1] = sums[0] + blocks_for(n, kLadderBlockThreads);
    tree = sums[1] + blocks_for(n, kLadderBlockThreads);
  }
};

Launch launch_of(std::int64_t blocks) {
  Launch launch;
  launch.grid.x = static_cast<unsigned>(blocks);
  launch.block.x = static_cast<unsigned>(kLadderBlockThreads);
  return launch;
}

std::vector<Launch> launch_levels(const LadderStep& step, const LadderBuffers& buffers, const Scratch& scratch,
                                  std::int64_t n) {
  std::vector<Launch> launches;
  const float* in = buffers.in;
  while (true) {
    const std::int64_t blocks = blocks_for(n, kLadderBlockThreads);
    float* const out = blocks == 1 ? buffers.out : scratch.sums[launches.size() % 2];
    Launch& launch = launches.emplace_back(launch_of(blocks));
    launch.arguments.push(in);
    launch.arguments.push(static_cast<unsigned>(n));
    launch.arguments.push(out);
    if (works_in_a_copy(step)) launch.arguments.push(scratch.tree);
    if (blocks == 1) return launches;
    in = out;
    n = blocks;
  }
}

}  // namespace

std::span<const LadderStep> ladder_steps() { return kSteps; }

std::string why_left_out(const LadderStep& step, const DeviceFacts& facts) {
  if (step.cuda_header.empty()) return "";
  if (facts.kind != "cuda") return fmt::format("it includes {}, so it needs CUDA", step.cuda_header);
  if (!GpuCompiler().include_folders(step.cuda_header).empty()) return "";
  return fmt::format("it includes {}, which was not found above the NVRTC library; CUDA_HOME names another toolkit",
                     step.cuda_header);
}

std::vector<LadderStep> ladder_steps_on(const DeviceFacts& facts) {
  std::vector<LadderStep> steps;
  for (const LadderStep& step : kSteps)
    if (why_left_out(step, facts).empty()) steps.push_back(step);
  return steps;
}

std::size_t ladder_scratch_bytes(const LadderStep& step, std::int64_t n) {
  const std::int64_t of_block = 2 + (works_in_a_copy(step) ? kLadderBlockThreads : 0);
  const std::int64_t floats = blocks_for(n, kLadderBlockThreads) * of_block;
  return kTicketBytes + static_cast<std::size_t>(floats) * sizeof(float);
}

int ladder_start_byte(const LadderStep& step) { return step.is_max ? 0xff : 0; }

Unit ladder_unit(const LadderStep& step) {
  const std::span<const SourceFile> files = embedded::ladder_kernels();
  const std::string name(step.file);
  Unit unit{.name = "ladder " + std::string(step.name),
            .source = "#include \"" + name + ".cu\"\n",
            .headers = {files.begin(), files.end()},
            .entries = {name}};
  if (step.finish == LadderFinish::two_kernels) unit.entries.push_back(name + "_finish");
  if (!step.cuda_header.empty()) unit.include_folders = GpuCompiler().include_folders(step.cuda_header);
  return unit;
}

std::vector<Launch> ladder_launches(const LadderStep& step, const LadderBuffers& buffers, std::int64_t n,
                                    std::int64_t most_blocks) {
  const Scratch scratch(buffers.scratch, n);
  if (step.finish == LadderFinish::levels) return launch_levels(step, buffers, scratch, n);

  std::int64_t grid = blocks_for(n, kLadderBlockThreads);
  if (step.grid == LadderGrid::wave) grid = std::min(grid, most_blocks);
  if (step.grid == LadderGrid::thousand) grid = std::min(grid, kThousand);
  std::vector<Launch> launches{launch_of(grid)};
  Launch& main = launches.front();
  main.arguments.push(buffers.in);
  main.arguments.push(static_cast<unsigned>(n));
  if (step.finish == LadderFinish::atomic) {
    main.arguments.push(buffers.out);
    return launches;
  }
  main.arguments.push(scratch.sums[0]);
  if (step.finish == LadderFinish::last_block) {
    main.arguments.push(scratch.ticket);
    main.arguments.push(buffers.out);
    return launches;
  }
  Launch finish = launch_of(1);
  finish.entry = 1;
  finish.arguments.push(static_cast<const float*>(scratch.sums[0]));
  finish.arguments.push(static_cast<unsigned>(grid));
  finish.arguments.push(buffers.out);
  launches.push_back(finish);
  return launches;
}

}  // namespace hone::benchmarks
