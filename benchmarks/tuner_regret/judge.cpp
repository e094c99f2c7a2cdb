#include "benchmarks/tuner_regret/judge.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"
#include "benchmarks/tuner_regret/process.h"

namespace hone::benchmarks {
namespace {

namespace fs = std::filesystem;

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
      candidates.push_back({{"variant", reduce_family().space().to_string(candidate.policy)},
                            {"max_blocks", candidate.geometry.max_blocks}});
    const Problem& problem = rivalry.problem;
    json.push_back({{"op", problem.family->operations()[problem.operation]},
                    {"dtype", info(problem.dtype).name},
                    {"n", problem.extents[0]},
                    {"candidates", candidates}});
  }
  return json;
}

Rivalry rivalry_from(const nlohmann::json& json) {
  Rivalry rivalry{.problem = reduce_problem(parse_reduce_op(json.at("op").get<std::string>()),
                                            parse_dtype(json.at("dtype").get<std::string>()), json.at("n")),
                  .candidates = {}};
  for (const nlohmann::json& candidate : json.at("candidates"))
    rivalry.candidates.push_back(
        {reduce_family().space().parse(candidate.at("variant").get<std::string>()).value(),
         {.max_blocks = candidate.at("max_blocks")}});
  return rivalry;
}

}  // namespace

std::vector<std::vector<double>> judge(const std::vector<Rivalry>& rivalries, std::vector<std::string> command,
                                       int processes, const fs::path& folder) {
  const fs::path file = folder / "rivalries.json";
  write_json(file.string(), to_json(rivalries));
  command.push_back(file.string());
  std::vector<std::vector<std::vector<double>>> times;  // by process, rivalry and candidate
  for (int i = 0; i < processes; ++i) {
    const Output output = run_process(command);
    if (output.exit_code != 0)
      throw Error(ErrorCode::io_failed,
                  fmt::format("a judging process ended with {}: {}", output.exit_code, output.text));
    times.push_back(read_json(times_of(file)).get<std::vector<std::vector<double>>>());
  }
  fs::remove(times_of(file));
  fs::remove(file);

  std::vector<std::vector<double>> medians;
  for (std::size_t c = 0; c < rivalries.size(); ++c) {
    medians.emplace_back();
    for (std::size_t candidate = 0; candidate < rivalries[c].candidates.size(); ++candidate) {
      std::vector<double> each;
      for (const auto& of_process : times) each.push_back(of_process.at(c).at(candidate));
      const bool is_measured = std::none_of(each.begin(), each.end(), [](double us) { return us == 0; });
      medians.back().push_back(is_measured ? median(each) : 0);
    }
  }
  return medians;
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
    times.push_back(us);
  }
  write_json(times_of(file).string(), times);
}

}  // namespace hone::benchmarks
