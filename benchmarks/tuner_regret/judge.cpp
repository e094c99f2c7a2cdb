#include "benchmarks/tuner_regret/judge.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <hone/sdk/family_table.h>
#include <nlohmann/json.hpp>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"
#include "benchmarks/tuner_regret/process.h"

namespace hone::benchmarks {
namespace {

namespace fs = std::filesystem;

/// Times are medians of ratios to the leader's: rounding moves them.
constexpr double kRounding = 1e-6;

fs::path times_of(const fs::path& rivalries) { return fs::path(rivalries) += ".times"; }

nlohmann::json read_json(const fs::path& file) {
  std::ifstream in(file);
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_array()) throw Error(ErrorCode::io_failed, file.string() + " is no list of rivalries or times");
  return json;
}

nlohmann::ordered_json to_json(const std::vector<Rivalry>& rivalries) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Rivalry& rivalry : rivalries) {
    nlohmann::ordered_json candidates = nlohmann::ordered_json::array();
    for (const Candidate& candidate : rivalry.candidates)
      candidates.push_back({{"policy", rivalry.problem.family->space().to_string(candidate.policy)},
                            {"max_blocks", candidate.geometry.max_blocks}});
    const Problem& problem = rivalry.problem;
    json.push_back({{"family", problem.family->name()},
                    {"operation", problem.operation},
                    {"dtype", info(problem.dtype).name},
                    {"alignment", problem.alignment},
                    {"extents", problem.extents},
                    {"pitches", problem.pitches},
                    {"in_graph", problem.launch_context == LaunchContext::graph},
                    {"candidates", candidates}});
  }
  return json;
}

Problem problem_from(const nlohmann::json& json) {
  const std::string name = json.at("family");
  const Families families = built_in_families();
  const auto row = std::find_if(families.begin(), families.end(),
                                [&](const FamilyRow& each) { return each.family().name() == name; });
  if (row == families.end()) throw Error(ErrorCode::not_found, fmt::format("there is no family '{}'", name));
  Problem problem{.family = &row->family(),
                  .operation = json.at("operation"),
                  .dtype = parse_dtype(json.at("dtype").get<std::string>()),
                  .alignment = json.at("alignment"),
                  .extents = json.at("extents"),
                  .pitches = json.at("pitches")};
  if (row->as_called) problem = row->as_called(problem);
  problem.launch_context = json.at("in_graph").get<bool>() ? LaunchContext::graph : LaunchContext::stream;
  return problem;
}

Rivalry rivalry_from(const nlohmann::json& json) {
  Rivalry rivalry{.problem = problem_from(json), .candidates = {}};
  const ParameterSpace& space = rivalry.problem.family->space();
  for (const nlohmann::json& candidate : json.at("candidates"))
    rivalry.candidates.push_back({space.parse(candidate.at("policy").get<std::string>()).value(),
                                  {.max_blocks = candidate.at("max_blocks")}});
  return rivalry;
}

/// True if the fastest takes what the host takes to enqueue it.
bool is_paced(const DeviceLimits& limits, const Rivalry& rivalry, const std::vector<double>& us) {
  if (rivalry.problem.launch_context != LaunchContext::stream) return false;
  std::optional<std::size_t> fastest;
  for (std::size_t i = 0; i < us.size(); ++i)
    if (us[i] > 0 && (!fastest || us[i] < us[*fastest])) fastest = i;
  if (!fastest) return false;
  const Policy& policy = rivalry.candidates[*fastest].policy;
  const int launches = rivalry.problem.family->shape(rivalry.problem, policy).launches;
  return us[*fastest] <= limits.enqueue_us * launches * (1 + kRounding);
}

}  // namespace

std::vector<Verdicts> judge(const std::vector<Rivalry>& rivalries, std::vector<std::string> command, int processes,
                            const fs::path& folder) {
  std::vector<Verdicts> verdicts;
  std::vector<Rivalry> contested;
  for (const Rivalry& rivalry : rivalries) {
    verdicts.push_back({.us = std::vector<double>(rivalry.candidates.size())});
    if (rivalry.candidates.size() > 1) contested.push_back(rivalry);
  }
  if (contested.empty()) return verdicts;

  const fs::path file = folder / "rivalries.json";
  write_json(file.string(), to_json(contested));
  command.push_back(file.string());
  std::vector<nlohmann::json> of_processes;
  for (int i = 0; i < processes; ++i) {
    const Output output = run_process(command);
    if (output.exit_code != 0)
      throw Error(ErrorCode::io_failed,
                  fmt::format("a judging process ended with {}: {}", output.exit_code, output.text));
    of_processes.push_back(read_json(times_of(file)));
  }
  fs::remove(times_of(file));
  fs::remove(file);

  std::size_t place = 0;
  for (Verdicts& verdict : verdicts) {
    if (verdict.us.size() == 1) continue;
    for (std::size_t candidate = 0; candidate < verdict.us.size(); ++candidate) {
      std::vector<double> us;
      for (const nlohmann::json& of_process : of_processes)
        us.push_back(of_process.at(place).at("us").at(candidate).get<double>());
      const bool is_measured = std::none_of(us.begin(), us.end(), [](double each) { return each == 0; });
      verdict.us[candidate] = is_measured ? median(us) : 0;
    }
    for (const nlohmann::json& of_process : of_processes)
      verdict.is_paced = verdict.is_paced || of_process.at(place).at("is_paced").get<bool>();
    ++place;
  }
  return verdicts;
}

std::vector<std::string> judge_command(const RegretOptions& options, const Device& device) {
  return {fs::read_symlink("/proc/self/exe").string(),
          "--hone",
          options.hone,
          "--device",
          std::string(device.name()),
          "--compare-ms",
          std::to_string(options.compare_ms),
          "--judge"};
}

void measure_rivalries(const std::shared_ptr<Device>& device, const fs::path& file, int compare_ms) {
  Session session(device, {.on_miss = MissPolicy::error, .cache_path = ""});
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  for (const nlohmann::json& json : read_json(file)) {
    const Rivalry rivalry = rivalry_from(json);
    TuningOptions options;
    options.budget = std::chrono::milliseconds(compare_ms);
    options.only = rivalry.candidates;
    std::vector<double> us(rivalry.candidates.size(), 0);
    Tuning tuning = session.compare(rivalry.problem, options);
    if (tuning.budget_spent) tuning = session.compare(rivalry.problem, options);  // compiling may have taken it
    for (const Trial& trial : tuning.trials) {
      const auto& all = rivalry.candidates;
      const auto place = std::find(all.begin(), all.end(), trial.candidate) - all.begin();
      if (trial.verdict == Verdict::ok) us[static_cast<std::size_t>(place)] = trial.median_us;
    }
    times.push_back({{"us", us}, {"is_paced", is_paced(device->limits(), rivalry, us)}});
  }
  write_json(times_of(file).string(), times);
}

bool conclude(const Rivalry& rivalry, const Verdicts& verdicts, Finding& finding) {
  if (rivalry.candidates.size() == 1) return true;
  const bool is_against_all = finding.part == "regret" || finding.part == "families";
  finding.chosen_us = verdicts.us.front();
  finding.is_paced = verdicts.is_paced;
  for (std::size_t i = is_against_all ? 0 : 1; i < verdicts.us.size(); ++i) {
    const double us = verdicts.us[i];
    if (us == 0 || (finding.reference_us > 0 && (!is_against_all || us >= finding.reference_us))) continue;
    finding.reference_us = us;
    finding.reference = text_of(rivalry.problem, rivalry.candidates[i]);
  }
  if (finding.chosen_us > 0 && finding.reference_us > 0) return true;
  fmt::print(stderr, "{}: {} or {} could not be measured or is wrong\n", finding.problem, finding.chosen,
             finding.reference);
  return false;
}

std::string text_of(const Problem& problem, const Candidate& candidate) {
  return fmt::format("{} blocks={}", problem.family->space().to_string(candidate.policy),
                     candidate.geometry.max_blocks);
}

}  // namespace hone::benchmarks
