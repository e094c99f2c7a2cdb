// Findings: what the tuner's choices cost against better knowledge, as rows, and what they add up to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <hone/device_facts.h>
#include <nlohmann/json_fwd.hpp>

namespace hone::benchmarks {

/// One problem, two choices for it, measured side by side.
struct Finding {
  std::string part;       ///< "regret", "stability", "interrupted", "untuned" or "families"
  std::string problem;    ///< "reduce sum f32 n=1024"
  std::string chosen;     ///< by the campaign or the tuning, as policy and blocks
  std::string reference;  ///< the best of an exhaustive search or a sample, the second campaign's choice, or a tuning
                          ///< at this very size
  double chosen_us = 0;     ///< both 0: they are one and the same
  double reference_us = 0;  ///< for "regret" and "families", the fastest of all that were measured side by side
  std::string chosen_fate = {};     ///< what became of it in the campaign; "": nothing is known
  std::string reference_fate = {};  ///< likewise
  int measured = 0;                 ///< candidates that the campaign measured; 0: not known
  int candidates = 0;               ///< that there are, by the share of the policies that were tried; 0: not known
  int policies = 0;                 ///< of "families": that are valid
  int tried = 0;                    ///< so many of them were measured, drawn at random
  bool is_paced = false;            ///< the host sets the time: any choice is as good

  /// How much longer the choice takes: 0.01 is 1 %. Of "stability", either may be the slower one.
  double regret() const;
};

/// The regrets of a part, without rows that the host paces.
struct Summary {
  std::string part;
  std::size_t rows = 0;
  std::size_t paced = 0;  ///< rows that are left out
  std::size_t sampled = 0;  ///< rows whose reference comes from a sample of what is valid
  double worst = 0;
  double mean = 0;
  double measured_share = 0;  ///< of all candidates of all rows; 0: not known
  std::string worst_at;
};

/// One for each part that has rows, in the order of their first.
std::vector<Summary> summarise(const std::vector<Finding>& findings);

/// A campaign that was timed.
struct TimedCampaign {
  std::string command;
  double seconds = 0;
  int exit_code = 0;
  std::string last_lines;  ///< of what it printed: totals and the model's rank correlation
};

/// The table, one line for each finding, the largest loss first, and a line for each summary.
std::string to_table(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns);
nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns);

/// Writes both with the name of the device and the date to OUT.txt and OUT.json; nothing if `out` is "". Throws
/// Error(io_failed).
void write_findings(const std::string& out, const DeviceFacts& facts, const std::vector<Finding>& findings,
                    const std::vector<TimedCampaign>& campaigns);

}  // namespace hone::benchmarks
