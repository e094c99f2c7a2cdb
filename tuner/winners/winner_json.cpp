#include "tuner/winners/winner_json.h"

#include <nlohmann/json.hpp>

#include "tuner/winners/misfit.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

/// null for 0, which stands for what is not known.
template <class Number>
Json known(Number value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json to_json(const cache::CandidateRecord& candidate) {
  return {{"policy", candidate.policy},
          {"max_blocks", candidate.max_blocks},
          {"block_threads", candidate.block_threads},
          {"registers", known(candidate.registers)},
          {"static_smem_bytes", candidate.static_smem_bytes},
          {"local_bytes", candidate.local_bytes},
          {"max_threads_per_block", candidate.max_threads_per_block},
          {"resident_blocks", candidate.resident_blocks}};
}

Json to_json(const cache::KeyRecord& key) {
  Json sizes = Json::array();
  for (const cache::RangeRecord& range : key.problem.sizes)
    sizes.push_back({{"first", range.first}, {"last", range.last}});
  return {{"device",
           {{"kind", key.device.kind},
            {"name", key.device.name},
            {"architecture", key.device.architecture},
            {"identity", key.device.identity},
            {"sm_count", key.device.sm_count},
            {"max_threads_per_sm", key.device.max_threads_per_sm},
            {"peak_bandwidth_gbps", known(key.device.peak_bandwidth_gbps)}}},
          {"toolchain",
           {{"compiler", key.toolchain.compiler},
            {"driver", key.toolchain.driver},
            {"family_digest", key.toolchain.family_digest}}},
          {"problem",
           {{"family", key.problem.family},
            {"operation", key.problem.operation},
            {"dtype", key.problem.dtype},
            {"numerics", key.problem.numerics},
            {"launch_context", key.problem.launch_context},
            {"alignment", key.problem.alignment},
            {"objective", key.problem.objective},
            {"sizes", std::move(sizes)}}}};
}

}  // namespace

Json to_json(const cache::StoredWinner& stored, const cache::StoredWinner* measured) {
  Json json{{"id", stored.id}, {"created_at", stored.created_at}, {"binary_bytes", stored.binary_bytes}};
  json.update(to_json(stored.key));
  json["candidate"] = to_json(stored.winner.candidate);
  const std::string_view how = how_text(stored);
  const auto here = [&](auto value) { return how == "tuned" ? Json(value) : Json(nullptr); };
  json["how"] = how;
  const std::string misfit = misfit_of(stored);
  json["misfit"] = misfit.empty() ? Json(nullptr) : Json(misfit);
  json["tuned"] = stored.winner.tuned;
  json["lender"] = how == "nearest" || how == "shipped" ? Json(stored.winner.lender) : Json(nullptr);
  json["tuned_extents"] = how == "heuristic" ? Json(nullptr) : Json(stored.winner.tuned_extents);
  json["measured_by"] = how != "heuristic" && how != "shipped" && measured ? Json(measured->id) : Json(nullptr);
  json["bytes_moved"] = here(stored.winner.bytes_moved);
  json["median_us"] = here(stored.winner.median_us);
  json["spread_us"] = here(stored.winner.spread_us);
  json["occupancy"] = known(winner_occupancy(stored));
  json["gbps"] = here(winner_gbps(stored));
  return json;
}

Json to_json(const cache::TuningRecord& tuning) {
  Json trials = Json::array();
  for (const cache::TrialRecord& trial : tuning.trials) {
    trials.push_back({{"candidate", to_json(trial.candidate)},
                      {"bytes_in_flight_per_sm", trial.bytes_in_flight_per_sm},
                      {"predicted_us", trial.predicted_us},
                      {"median_us", trial.median_us},
                      {"spread_us", trial.spread_us},
                      {"samples", trial.samples},
                      {"sequence", known(trial.sequence)},
                      {"is_default", trial.is_default},
                      {"verdict", trial.verdict},
                      {"reason", trial.reason},
                      {"energy_uj", known(trial.energy_uj)},
                      {"energy_spread_uj", trial.energy_uj > 0 ? Json(trial.energy_spread_uj) : Json(nullptr)}});
  }
  return {{"started_at", tuning.started_at},
          {"compile_ms", tuning.compile_ms},
          {"measure_ms", tuning.measure_ms},
          {"budget_spent", tuning.budget_spent},
          {"power_limit_w", known(tuning.power_limit_w)},
          {"trials", std::move(trials)}};
}

}  // namespace hone::tuner
