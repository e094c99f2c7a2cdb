// The JSON of the programs that compare Hone with peers; benchmarks/in_processes.py reads it.
#pragma once

#include <string>
#include <vector>

#include <hone/device_facts.h>
#include <nlohmann/json.hpp>

#include "benchmarks/common/interleaved.h"

namespace hone::benchmarks {

/// The time that a peer took for a cell.
struct PeerTiming {
  std::string peer;
  Timing timing;
  bool agrees = true;  ///< its result and Hone's are the same, as far as rounding allows
};

/// The version of the CUDA runtime that the programs were linked with, "13.0"; "" without.
std::string cuda_version();

/// The facts that a run states about itself, with an empty list of rows. `key`: the members that name a row's cell.
nlohmann::ordered_json run_json(const DeviceFacts& device, int budget_ms, const std::vector<std::string>& key);

/// Adds the members that are the same in the rows of all programs: "context" and "company" of the setting, "hone_us",
/// "hone_spread_us", "batches", "host_share", and "peers" with "us", "spread_us", "host_share", "ratio" and "agrees" of
/// each.
void add_timings(nlohmann::ordered_json& row, const Setting& setting, const Timing& hone,
                 const std::vector<PeerTiming>& peers);

}  // namespace hone::benchmarks
