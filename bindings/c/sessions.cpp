// Sessions: options, counters, and what can be done ahead of a call.
#include <chrono>
#include <stop_token>

#include <nlohmann/json.hpp>

#include "bindings/c/handles.h"
#include "bindings/c/status.h"

using namespace hone;
using hone::c::copied, hone::c::guarded, hone::c::required;
using Json = nlohmann::ordered_json;

namespace hone::c {

void write_choice(const Choice& choice, hone_choice* to) {
  if (to == nullptr) return;
  hone_choice found{
      .size = 0, .source = static_cast<int32_t>(choice.source), .tuned = 0, .median_us = 0, .max_blocks = 0};
  if (choice.winner != nullptr) {
    found.tuned = choice.winner->tuned;
    found.median_us = choice.winner->median_us;
    found.max_blocks = choice.winner->candidate.geometry.max_blocks;
  }
  const hone_choice known = read(to, found, "hone_choice");
  found.size = known.size;
  std::memcpy(to, &found, known.size);
}

namespace {

hone_session_options options_of(const SessionOptions& options) {
  return {.size = 0,
          .on_miss = static_cast<int32_t>(options.on_miss),
          .capture_workspaces = options.capture_workspaces,
          .tune_budget_ms = options.tune_budget.count(),
          .cache_max_bytes = options.cache_max_bytes,
          .cache_path = nullptr,
          .cache_read_only = options.cache_read_only,
          .load_binaries = options.load_binaries,
          .validate_pointers = options.validate_pointers,
          .objective = static_cast<int32_t>(options.objective)};
}

SessionOptions options_of(const hone_session_options* given) {
  SessionOptions options = SessionOptions::from_environment();
  if (given == nullptr) return options;
  const hone_session_options read_options = read(given, options_of(options), "hone_session_options");
  if (read_options.on_miss < HONE_ON_MISS_TUNE || read_options.on_miss > HONE_ON_MISS_ERROR)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("on_miss is {}: HONE_ON_MISS_TUNE, _HEURISTIC and _ERROR are 0 to 2", read_options.on_miss));
  if (read_options.objective != HONE_OBJECTIVE_TIME && read_options.objective != HONE_OBJECTIVE_ENERGY)
    throw Error(ErrorCode::invalid_argument, fmt::format("objective is {}: HONE_OBJECTIVE_TIME is 0, and _ENERGY 1",
                                                         read_options.objective));
  const auto refuse_negative = [](std::int64_t value, const char* what) {
    if (value < 0) throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}: give 0 or more", what, value));
  };
  refuse_negative(read_options.capture_workspaces, "capture_workspaces");
  refuse_negative(read_options.tune_budget_ms, "tune_budget_ms");
  options.on_miss = static_cast<MissPolicy>(read_options.on_miss);
  options.objective = static_cast<Objective>(read_options.objective);
  options.capture_workspaces = read_options.capture_workspaces;
  options.tune_budget = std::chrono::milliseconds(read_options.tune_budget_ms);
  options.cache_max_bytes = read_options.cache_max_bytes;
  options.cache_read_only = flag_of(read_options.cache_read_only, "cache_read_only");
  options.load_binaries = flag_of(read_options.load_binaries, "load_binaries");
  options.validate_pointers = flag_of(read_options.validate_pointers, "validate_pointers");
  if (read_options.cache_path != nullptr) {
    options.cache_path = read_options.cache_path;
    if (options.cache_path.empty()) {
      options.system_caches.clear();
      options.shipped_winners.clear();
    }
  }
  return options;
}

Json json_of(const Tuning& tuning) {
  Json trials = Json::array();
  for (const Trial& trial : tuning.trials)
    trials.push_back({{"policy", tuning.problem.family->space().to_string(trial.candidate.policy)},
                      {"policies", trial.policies},
                      {"max_blocks", trial.candidate.geometry.max_blocks},
                      {"registers", trial.resources.registers},
                      {"resident_blocks", trial.resident_blocks},
                      {"predicted_us", trial.predicted_us},
                      {"median_us", trial.median_us},
                      {"spread_us", trial.spread_us},
                      {"samples", trial.samples},
                      {"energy_uj", trial.energy_uj},
                      {"is_default", trial.is_default},
                      {"verdict", name(trial.verdict)},
                      {"reason", trial.reason.text()}});
  return {{"problem", to_string(tuning.problem)}, {"objective", name(tuning.objective)},
          {"winner", tuning.winner ? Json(*tuning.winner) : Json(nullptr)},
          {"is_tuned", tuning.has_compared()},    {"search_end", name(tuning.search_end)},
          {"compile_ms", tuning.compile_ms},      {"measure_ms", tuning.measure_ms},
          {"roofline_us", tuning.roofline_us},    {"rank_correlation", tuning.rank_correlation},
          {"trials", std::move(trials)}};
}

/// A copy for the caller. Messages of compilers and names of files may hold any bytes.
char* text_of(const Json& json) { return copied(json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace
}  // namespace hone::c

hone_status hone_session_options_init(hone_session_options* options, size_t size) {
  hone_session_options defaults{};
  const hone_status status = guarded([&] { defaults = c::options_of(SessionOptions::from_environment()); });
  return status != HONE_OK ? status : c::init(options, size, defaults, "hone_session_options");
}

hone_status hone_session_create(hone_device* device, const hone_session_options* options, hone_session** session) {
  return guarded([&] {
    required(session, "session") = new hone_session{Session(required(device, "device").device, c::options_of(options))};
  });
}

void hone_session_destroy(hone_session* session) { delete session; }

hone_status hone_session_pin(hone_session* session) {
  return guarded([&] { required(session, "session").session.pin(); });
}

hone_status hone_session_counters(const hone_session* session, char** json) {
  return guarded([&] {
    const SessionCounters counters = required(session, "session").session.counters();
    required(json, "json") = c::text_of(Json{
        {"cache_hits", counters.cache_hits},
        {"tunings", counters.tunings},
        {"heuristics", counters.heuristics},
        {"nearest", counters.nearest},
        {"shipped", counters.shipped},
        {"compiles", counters.compiles},
        {"cache_failures", counters.cache_failures},
        {"caches_left_out", counters.caches_left_out},
        {"cache_rejects", counters.cache_rejects},
        {"refused_grids", counters.refused_grids},
        {"stale_hits", counters.stale_hits},
        {"waits", counters.waits},
        {"not_stored", counters.not_stored},
        {"last_cache_failure", counters.last_cache_failure}});
  });
}

hone_status hone_choice_init(hone_choice* choice, size_t size) {
  return c::init(choice, size, hone_choice{}, "hone_choice");
}

hone_status hone_prepare(hone_session* session, const hone_problem* problem, hone_choice* choice) {
  return guarded([&] {
    c::write_choice(required(session, "session").session.prepare(required(problem, "problem").problem), choice);
  });
}

hone_status hone_tune(hone_session* session, const hone_problem* problem, int64_t budget_ms, char** json) {
  return hone_tune_with_progress(session, problem, budget_ms, nullptr, nullptr, json);
}

hone_status hone_tune_with_progress(hone_session* session, const hone_problem* problem, int64_t budget_ms,
                                    hone_progress progress, void* context, char** json) {
  return guarded([&] {
    if (budget_ms <= 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("budget_ms is {}: give at least 1", budget_ms));
    TuningOptions options{.budget = std::chrono::milliseconds(budget_ms)};
    std::stop_source stop;
    options.stop = stop.get_token();
    if (progress != nullptr) {
      options.on_progress = [&](const TuningProgress& now) {
        if (progress(context, static_cast<int32_t>(now.phase), now.done, now.total, now.best_us) != 0)
          stop.request_stop();
      };
    }
    const Tuning tuning = required(session, "session").session.tune(required(problem, "problem").problem, options);
    if (json != nullptr) *json = c::text_of(c::json_of(tuning));
  });
}

hone_status hone_stored_tuning(const hone_session* session, const hone_problem* problem, char** json) {
  return guarded([&] {
    const std::optional<Tuning> tuning =
        required(session, "session").session.stored_tuning(required(problem, "problem").problem);
    required(json, "json") = c::text_of(tuning ? c::json_of(*tuning) : Json(nullptr));
  });
}
