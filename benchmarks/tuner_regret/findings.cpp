#include "benchmarks/tuner_regret/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include <hone/error.h>
#include <nlohmann/json.hpp>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"

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
    double measured = 0, candidates = 0;
    for (const Finding& row : findings) {
      if (row.part != finding.part) continue;
      summary.paced += row.is_paced;
      if (row.is_paced) continue;
      ++summary.rows;
      summary.sampled += row.tried < row.policies;
      summary.mean += row.regret();
      if (row.measured > 0) measured += row.measured, candidates += row.candidates;
      if (!summary.worst_at.empty() && row.regret() <= summary.worst) continue;
      summary.worst = row.regret();
      summary.worst_at = row.problem;
    }
    summary.mean /= static_cast<double>(std::max<std::size_t>(summary.rows, 1));
    if (candidates > 0) summary.measured_share = measured / candidates;
  }
  return summaries;
}

std::string to_table(const std::vector<Finding>& findings, const std::vector<TimedCampaign>& campaigns) {
  std::string text = fmt::format("{:<10} {:<52} {:>10} {:>10} {:>8} {:>9} {:>11}  {}\n", "part", "problem", "chosen µs",
                                 "ref. µs", "behind", "measured", "tried", "chosen | reference");
  std::vector<Finding> rows = findings;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Finding& a, const Finding& b) { return a.regret() > b.regret(); });
  const auto part_of = [](int part, int whole) { return whole > 0 ? fmt::format("{}/{}", part, whole) : "-"; };
  for (const Finding& row : rows)
    text += fmt::format("{:<10} {:<52} {:>9.3f} {:>9.3f} {:>7.2f}% {:>9} {:>11}  {} | {}{}\n", row.part, row.problem,
                        row.chosen_us, row.reference_us, 100 * row.regret(), part_of(row.measured, row.candidates),
                        part_of(row.tried, row.policies), row.chosen, row.reference,
                        row.is_paced ? " (paced by the host)" : "");
  text += '\n';
  for (const Summary& summary : summarise(findings)) {
    text += fmt::format("{}: {} rows, worst {:.2f} % ({}), mean {:.2f} %", summary.part, summary.rows,
                        100 * summary.worst, summary.worst_at, 100 * summary.mean);
    if (summary.measured_share > 0)
      text += fmt::format(", {:.1f} % of the candidates measured", 100 * summary.measured_share);
    if (summary.sampled > 0)
      text += fmt::format("; {} next to a sample of what is valid, the others next to all of it", summary.sampled);
    if (summary.paced > 0) text += fmt::format("; {} further rows are paced by the host", summary.paced);
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
                                 {"paced", summary.paced},
                                 {"sampled", summary.sampled},
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
                            {"chosen", row.chosen},
                            {"reference", row.reference},
                            {"chosen_fate", row.chosen_fate},
                            {"reference_fate", row.reference_fate},
                            {"chosen_us", row.chosen_us},
                            {"reference_us", row.reference_us},
                            {"regret", row.regret()},
                            {"measured", row.measured},
                            {"candidates", row.candidates},
                            {"policies", row.policies},
                            {"tried", row.tried},
                            {"is_paced", row.is_paced}});
  return json;
}

void write_findings(const std::string& out, const DeviceFacts& facts, const std::vector<Finding>& findings,
                    const std::vector<TimedCampaign>& campaigns) {
  if (out.empty()) return;
  auto json = to_json(findings, campaigns);
  json["device"] = facts.name;
  json["driver"] = facts.driver;
  json["date"] = today();
  write_json(out + ".json", json);
  std::ofstream table(out + ".txt");
  table << fmt::format("{}, driver {}, {}\n\n", facts.name, facts.driver, today()) << to_table(findings, campaigns);
  if (!table.flush()) throw Error(ErrorCode::io_failed, "cannot write " + out + ".txt");
}

}  // namespace hone::benchmarks
