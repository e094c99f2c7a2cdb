// OccupancyReport: what the occupancy of one kernel on one GPU is, what limits it, and what follows for a grid.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hone/device_facts.h>
#include <hone/sdk/occupancy.h>

#include "tuner/context/context.h"

namespace hone::tuner {

/// The kernel and the GPU that a report is about. Plain data.
struct OccupancyQuestion {
  std::string what;  ///< "kernel scale of kernel.cu"; "": numbers that were typed
  DeviceFacts facts = {};
  Resources resources = {};
  int block_threads = 0;  ///< 0: the largest block with the most resident threads
  std::size_t dynamic_smem_bytes = 0;
  std::int64_t grid_blocks = 0;                ///< 0: not asked
  std::int64_t bytes_in_flight_per_block = 0;  ///< 0: not known
};

/// The occupancy of a block size.
struct BlockRow {
  int threads = 0;
  OccupancyLimits limits = {};

  int resident_threads() const { return threads * limits.resident_blocks(); }
};

/// The blocks that are resident with another number of registers.
struct RegisterStep {
  int registers = 0;
  int resident_blocks = 0;
};

struct OccupancyReport {
  OccupancyQuestion question;  ///< with its block size
  OccupancyLimits limits = {};
  PotentialBlock potential = {};
  Waves waves = {};
  std::int64_t bytes_in_flight_per_sm = 0;         ///< 0: not known
  std::int64_t bytes_in_flight_needed_per_sm = 0;  ///< 0: not known
  std::optional<RegisterStep> one_less, one_more;
  std::optional<RegisterStep> next_more_blocks;   ///< the most registers with which more blocks fit
  std::optional<RegisterStep> next_fewer_blocks;  ///< the fewest registers with which fewer blocks fit
  std::vector<BlockRow> blocks;                   ///< the usual sizes, the asked one and the largest with most threads

  int resident_threads() const { return question.block_threads * limits.resident_blocks(); }
};

/// A pure function. Throws CommandError(usage) when no block size was given and none fits.
OccupancyReport report_occupancy(OccupancyQuestion question);

void print_report(const OccupancyReport& report, const Context& context);
nlohmann::ordered_json to_json(const OccupancyReport& report);

}  // namespace hone::tuner
