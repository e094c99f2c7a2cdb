#include "runtime/families/work_division.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace hone {

std::string launch_bounds(std::int32_t block_threads, MinBlocks min_blocks) {
  constexpr std::array<std::int32_t, 4> kThreadsOfSm{1, 0, 1536, 1024};  // as in MinBlocks
  const std::int32_t threads = kThreadsOfSm[static_cast<std::size_t>(min_blocks)];
  if (threads == 0) return fmt::format("{}", block_threads);
  return fmt::format("{}, {}", block_threads, std::max(1, threads / block_threads));
}

}  // namespace hone
