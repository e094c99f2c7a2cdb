// This measures the families' prune rules. Problems are searched exhaustively, then each rule is asked which of the
// measured policies it would have left out. Above 100 % the best of those is slower than the best that no rule leaves
// out.
#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "benchmarks/common/family_problems.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;

/// The policies of one problem that one rule leaves out.
struct LeftOut {
  std::string family, reason, problem;
  double best_us = std::numeric_limits<double>::infinity();
  double kept_us = 0;  ///< the best of those that no rule leaves out
  int policies = 0;

  double ratio() const { return best_us / kept_us; }
};

/// The policies that each rule leaves out of the measured trials of a problem.
std::vector<LeftOut> left_out(const Problem& problem, const Tuning& tuning, const DeviceFacts& facts) {
  std::map<std::string, LeftOut> by_reason;
  double kept_us = std::numeric_limits<double>::infinity();
  for (const Trial& trial : tuning.trials) {
    if (trial.verdict != Verdict::ok || trial.median_us <= 0) continue;
    const Reason reason = problem.family->prune(problem, trial.candidate.policy, facts);
    if (reason.empty()) {
      kept_us = std::min(kept_us, trial.median_us);
      continue;
    }
    LeftOut& row = by_reason[reason.general_text()];
    row.best_us = std::min(row.best_us, trial.median_us);
    ++row.policies;
  }
  std::vector<LeftOut> rows;
  for (auto& [reason, row] : by_reason) {
    row.family = problem.family->name();
    row.reason = reason;
    row.problem = to_string(problem);
    row.kept_us = kept_us;
    rows.push_back(std::move(row));
  }
  return rows;
}

struct Options {
  RunOptions run{.budget_ms = 15000};
  bool is_small = false;
};

bool run(const Options& options) {
  Session session = make_session(options.run);
  const DeviceFacts& facts = session.device()->facts();
  TuningOptions tuning_options;
  tuning_options.budget = std::chrono::milliseconds(options.run.budget_ms);
  tuning_options.exhaustive = true;
  std::vector<LeftOut> rows;
  fmt::print("{}, {}: policies that a rule leaves out, the best of them against the best that is left\n", facts.name,
             today());
  for (const Problem& problem : family_problems(options.is_small)) {
    const Tuning tuning = session.tune(problem, tuning_options);
    std::vector<LeftOut> of_problem = left_out(problem, tuning, facts);
    const auto measured = std::count_if(tuning.trials.begin(), tuning.trials.end(),
                                        [](const Trial& trial) { return trial.verdict == Verdict::ok; });
    fmt::print("\n{}: {} measured, {}\n", to_string(problem), measured, name(tuning.search_end));
    std::sort(of_problem.begin(), of_problem.end(),
              [](const LeftOut& a, const LeftOut& b) { return a.ratio() < b.ratio(); });
    for (const LeftOut& row : of_problem)
      fmt::print("  {:7.1f} %  {:5} policies  {}\n", 100 * row.ratio(), row.policies, row.reason);
    rows.insert(rows.end(), of_problem.begin(), of_problem.end());
  }
  nlohmann::ordered_json json{{"device", facts.name}, {"date", today()}, {"rows", nlohmann::ordered_json::array()}};
  for (const LeftOut& row : rows)
    json["rows"].push_back({{"family", row.family},
                            {"problem", row.problem},
                            {"reason", row.reason},
                            {"policies", row.policies},
                            {"best_us", row.best_us},
                            {"kept_us", row.kept_us}});
  write_json(options.run.json, json);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program(
      "prune_rules", argc, argv,
      [&](CommandLine& command_line) {
        command_line.describe("What the families' prune rules cost, by exhaustive searches");
        add_run_options(command_line, options.run);
        command_line.add_flag("--small", options.is_small, "problems that suit the host device");
      },
      [&] { return run(options); });
}
