// The tables and the JSON of a sweep.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <hone/device_facts.h>

#include "benchmarks/sweep/comparison.h"

namespace hone::benchmarks {

/// The facts about a run besides its rows.
struct SweepRun {
  DeviceFacts device;
  int budget_ms = 0;                     ///< of tuning, a problem; 0: nothing is tuned
  std::vector<std::string> peers = {};   ///< "CUB 3.0.1"
  std::string missing_peers = {};
  double tuning_seconds = 0;
  double total_seconds = 0;
  std::size_t cells = 0;            ///< that were asked for; fewer were measured if the time was over
  std::size_t measured_cells = 0;
};

/// Where, and with what.
std::string headline(const SweepRun& run);

/// A ratio below this is more than the noise of a timing behind.
inline constexpr double kBehind = 0.98;

/// The geometric mean, the worst and the number of a list of ratios, and how many of them are below kBehind: "1.35
/// (worst 0.97 of 12, 1 behind)"; "-" of none.
std::string ratio_summary(const std::vector<double>& ratios);

/// Every row, a line each.
std::string row_table(const std::vector<Row>& rows);

/// By context and peer: geometric mean and worst of the ratios by operation; the worst cells; how far from the ceiling
/// the large arrays are; misaligned against aligned.
std::string summary_tables(const std::vector<Row>& rows, const SweepRun& run);

nlohmann::ordered_json to_json(const std::vector<Row>& rows, const SweepRun& run);

}  // namespace hone::benchmarks
