// Findings: what the tuner's choices cost against better knowledge, as rows, and what they add up to. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace hone::benchmarks {

/// One problem, two choices for it, measured side by side.
struct Finding {
  std::string part;     ///< "regret", "stability", "interrupted" or "untuned"
  std::string problem;  ///< "sum f32"
  std::int64_t n = 0;
  std::string chosen;       ///< by the campaign, as policy and blocks
  std::string reference;    ///< the best of an exhaustive search, the second campaign's choice, or a tuning at this n
  double chosen_us = 0;     ///< both 0: they are one and the same
  double reference_us = 0;  ///< for "regret", the fastest of all that were measured side by side
  std::string chosen_fate = {};     ///< what became of it in the campaign; "": nothing is known
  std::string reference_fate = {};  ///< likewise
  int measured = 0;                 ///< candidates that the campaign measured; 0: not known
  int candidates = 0;               ///< that there are; 0: not known

  /// How much longer the choice takes: 0.01 is 1 %. Of "stability", either may be the slower one.
  double regret() const;
};

/// The regrets of a part.
struct Summary {
  std::string part;
  std::size_t rows = 0;
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

/// The table, one line for each finding and a line for each summary.
std::string to_table(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns);
nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns);

}  // namespace hone::benchmarks
