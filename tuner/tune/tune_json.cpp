#include "tuner/tune/tune_json.h"

#include <hone/kernel_family.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string_view>

#include "tuner/problems/problem_text.h"
#include "tuner/text/report.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, kOutcomes> kOutcomeNames{
    "tuned", "kept", "untuned", "failed", "not_stored", "interrupted", "not_reached"};

/// Null for what is not known.
Json or_null(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json extents_json(const Problem& problem) {
  Json json = Json::array();
  for (std::size_t i = 0; i < problem.family->extent_names().size(); ++i) json.push_back(problem.extents[i]);
  return json;
}

Json item_json(const CampaignItem& item, const CampaignResult& result) {
  const KernelFamily& family = *item.problem.family;
  Json json{{"problem", problem_label(item.problem)},
            {"family", family.name()},
            {"operation", family.operations()[item.problem.operation]},
            {"dtype", info(item.problem.dtype).name},
            {"context", name(item.problem.launch_context)},
            {"alignment", item.problem.alignment},
            {"extents", extents_json(item.problem)},
            {"device", result.devices[item.device].name},
            {"outcome", kOutcomeNames[static_cast<std::size_t>(item.outcome)]},
            {"winner", nullptr}};
  const bool has_winner =
      item.outcome == Outcome::tuned || item.outcome == Outcome::kept || item.outcome == Outcome::untuned;
  if (has_winner) {
    json["winner"] = {{"policy", family.space().to_string(item.candidate.policy)},
                      {"max_blocks", item.candidate.geometry.max_blocks},
                      {"median_us", or_null(item.median_us)},
                      {"measured_at", extents_json(item.measured_problem)},
                      {"gbps", or_null(bandwidth_gbps(family.bytes_moved(item.measured_problem), item.median_us))},
                      {"roofline_us", or_null(item.roofline_us)},
                      {"default_us", or_null(item.default_us)}};
  }
  json["measured"] = item.measured;
  json["rejected"] = item.rejected;
  json["reason"] = item.reason.empty() ? Json(nullptr) : Json(item.reason);
  json["died"] = item.died;
  json["reasons"] = Json::array();
  for (const ReasonCount& reason : item.reasons)
    json["reasons"].push_back({{"count", reason.count}, {"verdict", reason.verdict}, {"reason", reason.text()}});
  json["compile_ms"] = item.compile_ms;
  json["measure_ms"] = item.measure_ms;
  json["budget_spent"] = item.budget_spent;
  json["discarded_samples"] = item.discarded_samples;
  return json;
}

Json sweep_json(const SweepResult& sweep, const CampaignResult& result) {
  return {{"sweep", sweep_label(sweep.first)},
          {"device", result.devices[sweep.device].name},
          {"sizes", sweep.sizes},
          {"winners_before", sweep.winners_before},
          {"winners", sweep.winners},
          {"worst_regret", sweep.worst_regret},
          {"mean_regret", sweep.mean_regret},
          {"filled", sweep.filled}};
}

}  // namespace

Json tune_json(const CampaignResult& result, std::chrono::milliseconds elapsed, const std::filesystem::path& cache) {
  Json json{{"cache", cache.string()},
            {"devices", Json::array()},
            {"problems", Json::array()},
            {"sweeps", Json::array()},
            {"elapsed_ms", elapsed.count()},
            {"device_ms",
             {{"waiting_for_compiler", result.times.waiting_for_compiler_ms},
              {"measuring", result.times.measuring_ms},
              {"verifying", result.times.verifying_ms},
              {"comparing_sizes", result.times.comparing_sizes_ms},
              {"storing", result.times.storing_ms},
              {"hung", result.times.hung_ms},
              {"failed", result.times.failed_ms},
              {"idle", result.times.idle_ms}}},
            {"interrupted", result.interrupted},
            {"out_of_budget", result.out_of_budget}};
  for (const CampaignDevice& device : result.devices)
    json["devices"].push_back(
        {{"device", device.name}, {"name", device.label}, {"peak_bandwidth_gbps", or_null(device.peak_gbps)}});
  for (const CampaignItem& item : result.items) json["problems"].push_back(item_json(item, result));
  for (const SweepResult& sweep : result.sweeps) json["sweeps"].push_back(sweep_json(sweep, result));
  return json;
}

}  // namespace hone::tuner
