#include "tuner/explain/trial_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/reason.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "tuner/problems/kernel_spec_file.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;
using Setting = std::pair<std::string, std::string>;

constexpr std::string_view kGrid = "max_blocks", kAbsent = "none";

/// "block_threads=256 tail=warp" as pairs, and the grid.
std::vector<Setting> settings_of(const cache::CandidateRecord& candidate) {
  std::vector<Setting> settings;
  for (std::string_view rest = candidate.policy; !rest.empty();) {
    const std::string_view field = rest.substr(0, rest.find(' '));
    const std::size_t equals = std::min(field.find('='), field.size());
    settings.emplace_back(field.substr(0, equals), field.substr(std::min(equals + 1, field.size())));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
  }
  settings.emplace_back(kGrid, std::to_string(candidate.max_blocks));
  return settings;
}

Json value_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? Json(number) : Json(text);
}

/// The trials that were run, not only considered.
std::vector<const cache::TrialRecord*> tried(const cache::TuningRecord& tuning) {
  std::vector<const cache::TrialRecord*> trials;
  for (const cache::TrialRecord& trial : tuning.trials)
    if (trial.median_us > 0 || trial.verdict == "failed" || trial.verdict == "wrong") trials.push_back(&trial);
  return trials;
}

std::vector<std::string> parameter_names(const std::vector<const cache::TrialRecord*>& trials,
                                         const ParameterSpace* space = nullptr) {
  std::vector<std::string> names;
  if (space)
    for (const Parameter& parameter : space->parameters()) names.emplace_back(parameter.name);
  for (const cache::TrialRecord* trial : trials)
    for (const Setting& setting : settings_of(trial->candidate))
      if (setting.first != kGrid && std::ranges::find(names, setting.first) == names.end())
        names.push_back(setting.first);
  names.emplace_back(kGrid);
  return names;
}

Json configuration(const cache::TrialRecord& trial, const std::vector<std::string>& names) {
  const std::vector<Setting> settings = settings_of(trial.candidate);
  Json object = Json::object();
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(settings, [&](const Setting& each) { return each.first == name; });
    object[name] = found == settings.end() ? Json(kAbsent) : value_of(found->second);
  }
  return object;
}

bool did_not_compile(const cache::TrialRecord& trial) {
  return CountedReason::parse(trial.reason).reason.code == ReasonCode::does_not_compile;
}

/// Milliseconds, or Kernel Tuner's name of what went wrong.
Json time_of(const cache::TrialRecord& trial) {
  if (trial.verdict == "ok") return trial.median_us / 1e3;
  return did_not_compile(trial) ? "CompilationFailedConfig" : "RuntimeFailedConfig";
}

std::string_view invalidity(const cache::TrialRecord& trial) {
  if (trial.verdict == "ok") return "correct";
  if (trial.verdict == "wrong") return "correctness";
  return did_not_compile(trial) ? "compile" : "runtime";
}

}  // namespace

Json kernel_tuner_cache(const cache::StoredWinner& winner, const cache::TuningRecord& tuning,
                        const ParameterSpace* space) {
  const std::vector<const cache::TrialRecord*> trials = tried(tuning);
  const std::vector<std::string> names = parameter_names(trials, space);
  Json parameters = Json::object(), entries = Json::object();
  for (const std::string& name : names) parameters[name] = Json::array();
  if (space)
    for (const Parameter& parameter : space->parameters())
      for (const std::int32_t value : parameter.values)
        parameters[std::string(parameter.name)].push_back(value_of(parameter.spell(value)));
  for (const cache::TrialRecord* trial : trials) {
    Json entry = configuration(*trial, names);
    std::vector<std::string> key;
    for (const auto& [name, value] : entry.items()) {
      if (Json& known = parameters[name]; std::ranges::find(known, value) == known.end()) known.push_back(value);
      key.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    entry["time"] = time_of(*trial);
    for (const char* other : {"compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"})
      entry[other] = 0;
    entries[fmt::format("{}", fmt::join(key, ","))] = std::move(entry);
  }
  const auto& extents = winner.winner.tuned_extents;
  return {{"device_name", winner.key.device.name},
          {"kernel_name", problem_text(winner.key.problem)},
          {"problem_size", {extents[0], extents[1], extents[2]}},
          {"tune_params_keys", names},
          {"tune_params", parameters},
          {"objective", "time"},
          {kGridMember, kGrid},
          {"cache", entries}};
}

Json t4_results(const cache::TuningRecord& tuning) {
  const std::vector<const cache::TrialRecord*> trials = tried(tuning);
  const std::vector<std::string> names = parameter_names(trials);
  Json results = Json::array();
  for (const cache::TrialRecord* trial : trials) {
    Json result{{"configuration", configuration(*trial, names)},
                {"times", {{"runtimes", Json::array()}}},
                {"invalidity", invalidity(*trial)},
                {"correctness", trial->verdict == "wrong" ? 0 : 1},
                {"measurements", Json::array()},
                {"objectives", {"time"}}};
    if (trial->verdict == "ok") {
      result["times"]["runtimes"].push_back(trial->median_us / 1e3);
      result["measurements"].push_back({{"name", "time"}, {"value", trial->median_us / 1e3}, {"unit", "ms"}});
    }
    results.push_back(std::move(result));
  }
  return {{"results", results}, {"schema_version", "1.0.0"}, {"metadata", {{"timeunit", "milliseconds"}}}};
}

}  // namespace hone::tuner
