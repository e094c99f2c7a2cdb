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

/// The plain read or copy of as many bytes that took turns with the contestants.
struct PlainTiming {
  std::string name;
  Timing timing;
};

/// The least time in which anyone moved a cell's bytes: the plain read or copy, Hone, or a peer whose result agrees.
/// Among others, what a call adds may be nothing or less; that does not count, and if nobody took time, it is NaN.
struct Ceiling {
  double us;
  std::string by;

  /// Returns Hone's share of the ceiling, in percent; NaN for a call that took no time.
  double percent(const Timing& hone) const;
};
Ceiling ceiling_of(const PlainTiming& plain, const Timing& hone, const std::vector<PeerTiming>& peers);

/// The version of the CUDA runtime that the programs were linked with, "13.0"; "" without.
std::string cuda_version();

/// The facts that a run states about itself, with an empty list of rows. `key`: the members that name a row's cell.
nlohmann::ordered_json run_json(const DeviceFacts& device, int budget_ms, const std::vector<std::string>& key);

/// Adds the members that are the same in the rows of all programs: "context" and "company" of the setting, "hone_us",
/// "hone_spread_us", "batches", "host_share", and "peers" with "us", "spread_us", "host_share", "ratio" and "agrees" of
/// each.
void add_timings(nlohmann::ordered_json& row, const Setting& setting, const Timing& hone,
                 const std::vector<PeerTiming>& peers);

/// Adds "plain" and "plain_us" and, where someone took time, "ceiling_us", "ceiling_by" and "percent_of_ceiling".
void add_ceiling(nlohmann::ordered_json& row, const PlainTiming& plain, const Timing& hone,
                 const std::vector<PeerTiming>& peers);

}  // namespace hone::benchmarks
