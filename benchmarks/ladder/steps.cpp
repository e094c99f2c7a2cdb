#include "benchmarks/ladder/steps.h"

#include <algorithm>
#include <string>

#include "benchmarks/common/embedded.h"

namespace hone::benchmarks {
namespace {

constexpr LadderStep kSteps[] = {
    {"global_tree", LadderFinish::levels,
     "a tree in global memory, level by level; launched again on its own block sums"},
    {"shared_tree", LadderFinish::levels,
     "the tree in shared memory: the input is read once, only block sums are written"},
    {"warp_sync", LadderFinish::levels, "the last six levels in one warp: no barriers of the whole block"},
    {"shuffle", LadderFinish::levels,
     "values move between registers: one barrier and 32 bytes of shared memory are left"},
    {"grid_stride", LadderFinish::atomic, "resident blocks only, many elements a thread; block sums meet in an atomic"},
    {"vector_loads", LadderFinish::atomic, "16-byte loads, four in flight per thread"},
    {"two_kernels", LadderFinish::two_kernels,
     "a second kernel instead of atomics and zeroing: the same bits in every run"},
    {"last_block", LadderFinish::last_block, "one launch: the last block to arrive adds up the block sums"},
};

constexpr std::size_t kTicketBytes = 128;

std::int64_t blocks_for(std::int64_t elements, std::int64_t per_block) {
  return std::max<std::int64_t>(1, (elements + per_block - 1) / per_block);
}

bool works_in_a_copy(const LadderStep& step) { return step.name == "global_tree"; }

/// Where things lie in the scratch memory: the ticket, two arrays of block sums by turns, the copy that global_tree
/// works in, of that step alone.
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

std::vector<Launch> levels(const LadderStep& step, const LadderBuffers& buffers, const Scratch& scratch,
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

std::size_t ladder_scratch_bytes(const LadderStep& step, std::int64_t n) {
  const std::int64_t of_block = 2 + (works_in_a_copy(step) ? kLadderBlockThreads : 0);
  const std::int64_t floats = blocks_for(n, kLadderBlockThreads) * of_block;
  return kTicketBytes + static_cast<std::size_t>(floats) * sizeof(float);
}

Unit ladder_unit(const LadderStep& step) {
  const std::span<const SourceFile> files = embedded::ladder_kernels();
  const std::string name(step.name);
  Unit unit{.name = "ladder " + name,
            .source = "#include \"" + name + ".cu\"\n",
            .headers = {files.begin(), files.end()},
            .entries = {name}};
  if (step.finish == LadderFinish::two_kernels) unit.entries.push_back(name + "_finish");
  return unit;
}

std::vector<Launch> ladder_launches(const LadderStep& step, const LadderBuffers& buffers, std::int64_t n,
                                    std::int64_t most_blocks) {
  const Scratch scratch(buffers.scratch, n);
  if (step.finish == LadderFinish::levels) return levels(step, buffers, scratch, n);

  const std::int64_t grid = std::min(most_blocks, blocks_for(n, kLadderBlockThreads));
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
