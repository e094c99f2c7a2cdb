#include "runtime/families/work_division.h"

#include <fmt/format.h>

namespace hone {

std::string launch_bounds(std::int32_t block_threads, MinBlocks min_blocks) {
  constexpr std::int32_t kThreeQuarters = 1536;
  switch (min_blocks) {
    case MinBlocks::one: return fmt::format("{}, 1", block_threads);
    case MinBlocks::three_quarters: return fmt::format("{}, {}", block_threads, kThreeQuarters / block_threads);
    case MinBlocks::unset: break;
  }
  return fmt::format("{}", block_threads);
}

std::string kernel_entry(std::string_view body, std::string_view launch_bounds) {
  return fmt::format("hone::kernel<&{}, {}>", body, launch_bounds);
}

}  // namespace hone
