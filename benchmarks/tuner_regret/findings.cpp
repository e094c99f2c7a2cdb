#include "benchmarks/tuner_regret/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace hone::benchmarks {

double Finding::regret() const {
  if (chosen_us <= 0 || reference_us <= 0) return 0;
  const double ratio = chosen_us / reference_us;
  return part == "stability" ? std::max(ratio, 1 / ratio) - 1 : ratio - 1;
}

std::vector<Summary> summarise(const std::vector<Finding>& findings) {
  std::vector<Summary> summaries;
  for (const Finding& finding : findings) {
    if (std::any_of(summaries.begin(), summaries.end(),
                    [&](const Summary& known) { return known.part == finding.part; }))
      continue;
    Summary& summary = summaries.emplace_back();
    summary.part = finding.part;
    summary.worst = -1;
    double measured = 0, candidates = 0;
    for (const Finding& row : findings) {
      if (row.part != finding.part) continue;
      ++summary.rows;
      summary.mean += row.regret();
      if (row.measured > 0) measured += row.measured, candidates += row.candidates;
      if (row.regret() <= summary.worst) continue;
      summary.worst = row.regret();
      summary.worst_at = fmt::format("{} n={}", row.problem, row.n);
    }
    summary.mean /= static_cast<double>(summary.rows);
    if (candidates > 0) summary.measured_share = measured / candidates;
  }
  return summaries;
}

std::string to_table(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns) {
  std::string text = fmt::format("{:<10} {:<14} {:>11} {:>10} {:>10} {:>8} {:>9}  {}\n", "part", "problem", "n",
                                 "chosen µs", "ref. µs", "behind", "measured", "chosen | reference");
  for (const Finding& row : findings)
    text += fmt::format("{:<10} {:<14} {:>11} {:>10.3f} {:>9.3f} {:>7.2f}% {:>9}  {} | {}\n", row.part, row.problem,
                        row.n, row.chosen_us, row.reference_us, 100 * row.regret(),
                        row.candidates > 0 ? fmt::format("{}/{}", row.measured, row.candidates) : "-", row.chosen,
                        row.reference);
  text += '\n';
  for (const Summary& summary : summarise(findings)) {
    text += fmt::format("{}: {} rows, worst {:.2f} % ({}), mean {:.2f} %", summary.part, summary.rows,
                        100 * summary.worst, summary.worst_at, 100 * summary.mean);
    if (summary.measured_share > 0)
      text += fmt::format(", {:.1f} % of the candidates measured", 100 * summary.measured_share);
    text += '\n';
  }
  for (const TimedCampaign& campaign : campaigns)
    text += fmt::format("\n{:.1f} s (exit code {}): {}\n{}", campaign.seconds, campaign.exit_code, campaign.command,
                        campaign.last_lines);
  return text;
}

nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns) {
  nlohmann::ordered_json json{{"summaries", nlohmann::json::array()},
                              {"campaigns", nlohmann::json::array()},
                              {"rows", nlohmann::json::array()}};
  for (const Summary& summary : summarise(findings))
    json["summaries"].push_back({{"part", summary.part},
                                 {"rows", summary.rows},
                                 {"worst", summary.worst},
                                 {"worst_at", summary.worst_at},
                                 {"mean", summary.mean},
                                 {"measured_share", summary.measured_share}});
  for (const TimedCampaign& campaign : campaigns)
    json["campaigns"].push_back({{"command", campaign.command},
                                 {"seconds", campaign.seconds},
                                 {"exit_code", campaign.exit_code},
                                 {"last_lines", campaign.last_lines}});
  for (const Finding& row : findings)
    json["rows"].push_back({{"part", row.part},
                            {"problem", row.problem},
                            {"n", row.n},
                            {"chosen", row.chosen},
                            {"reference", row.reference},
                            {"chosen_fate", row.chosen_fate},
                            {"reference_fate", row.reference_fate},
                            {"chosen_us", row.chosen_us},
                            {"reference_us", row.reference_us},
                            {"regret", row.regret()},
                            {"measured", row.measured},
                            {"candidates", row.candidates}});
  return json;
}

}  // namespace hone::benchmarks
