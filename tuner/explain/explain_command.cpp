#include "tuner/explain/explain_command.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/problem.h>
#include <hone/sdk/source_digest.h>
#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ostream>
#include <vector>

#include "cache/store.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/json_output.h"
#include "tuner/explain/counters.h"
#include "tuner/explain/explanation.h"
#include "tuner/explain/summary.h"
#include "tuner/explain/trial_formats.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"
#include "tuner/winners/misfit.h"
#include "tuner/winners/parameter_effects.h"
#include "tuner/winners/problem_winners.h"
#include "tuner/winners/stored_facts.h"
#include "tuner/winners/winner_detail.h"
#include "tuner/winners/winner_json.h"

namespace hone::tuner {
namespace {

using cache::StoredWinner;
using Json = nlohmann::ordered_json;

Problem named_problem(const ExplainOptions& options) {
  const std::vector<Problem> problems = list_problems({.family = options.family,
                                                       .ops = options.op,
                                                       .dtypes = options.dtype,
                                                       .sizes = options.size,
                                                       .alignments = options.alignment,
                                                       .context = options.context,
                                                       .nan = options.nan,
                                                       .numerics = options.numerics});
  if (problems.size() == 1) return problems.front();
  throw CommandError(ExitCode::usage,
                     fmt::format("these options name {} problems; one is explained at a time", problems.size()));
}

void print_table(const Explanation& explanation, const Context& context) {
  Table table({{"candidate"},
               {"blocks", Align::right, 3},
               {"in flight/SM", Align::right, 6},
               {"predicted µs", Align::right, 4},
               {"µs", Align::right},
               {"± µs", Align::right, 7},
               {"gap", Align::right},
               {"samples", Align::right, 8},
               {"µJ", Align::right, 1, true},
               {"fate"},
               {"why"}});
  for (const CandidateFate& candidate : explanation.candidates) {
    const cache::TrialRecord& trial = *candidate.trial;
    const bool is_measured = trial.median_us > 0;
    table.add_row(
        {short_policy(trial.candidate.policy),
         blocks_cell(trial.candidate.max_blocks),
         trial.bytes_in_flight_per_sm > 0 ? format_bytes(trial.bytes_in_flight_per_sm) : std::string(kUnknown),
         us_text(trial.predicted_us), us_text(trial.median_us),
         is_measured ? format_us(trial.spread_us) : std::string(kUnknown),
         is_measured && trial.verdict == "ok" ? gap_text(candidate.gap) : std::string(kUnknown),
         is_measured ? fmt::format("{}", trial.samples) : std::string(kUnknown), energy_text(trial),
         std::string(name(candidate.fate)) + (trial.is_default ? " (default)" : ""),
         candidate.why.substr(0, candidate.why.find('\n'))});
  }
  table.print(context.out, context.environment.out_columns());
}

void print_explanation(const ExplainedWinner& explained, bool all, const Context& context) {
  print_summary(explained, context.out, context.environment.out_columns());
  context.out << '\n';
  if (all) print_table(explained.explanation, context);
  else print_groups(explained, context.out, context.environment.out_columns());
}

/// The limit of the winner, and the parameters that mattered.
Json summary_json(const ExplainedWinner& explained) {
  const WinnerLimit limit = explained.limit();
  const auto known = [](auto value) { return value > 0 ? Json(value) : Json(nullptr); };
  Json parameters = Json::array(), untried = Json::array();
  for (const ParameterEffect& effect : parameter_effects(explained.tuning)) {
    Json values = Json::array();
    for (const ValueEffect& value : effect.values)
      values.push_back({{"value", value.value}, {"best_us", value.best->median_us}});
    parameters.push_back({{"name", effect.name}, {"values", std::move(values)}});
  }
  for (const UntriedValues& each : untried_values(explained.stored, explained.tuning))
    untried.push_back({{"name", each.parameter}, {"values", each.values}, {"why", each.reason}});
  return {{"limit", name(limit.limit)},
          {"roofline_us", known(limit.roofline_us)},
          {"memory_us", known(limit.memory_us)},
          {"read_ceiling_gbps", known(explained.ceilings.read_gbps)},
          {"blocks", known(limit.blocks)},
          {"blocks_of_a_wave", known(limit.waves.slots)},
          {"bytes_in_flight_per_sm", known(explained.bytes_in_flight())},
          {"bytes_in_flight_needed_per_sm", known(explained.ceilings.bytes_in_flight_needed)},
          {"parameters", std::move(parameters)},
          {"never_tried", std::move(untried)}};
}

/// There are thousands of candidates: an initializer list would make an array of every field first.
Json candidate_json(const CandidateFate& candidate) {
  const cache::TrialRecord& trial = *candidate.trial;
  Json json = Json::object();
  auto& fields = json.get_ref<Json::object_t&>();
  fields.reserve(13);
  fields.emplace("policy", trial.candidate.policy);
  fields.emplace("max_blocks", trial.candidate.max_blocks);
  fields.emplace("bytes_in_flight_per_sm", trial.bytes_in_flight_per_sm);
  fields.emplace("predicted_us", trial.predicted_us);
  fields.emplace("median_us", trial.median_us);
  fields.emplace("spread_us", trial.spread_us);
  fields.emplace("samples", trial.samples);
  fields.emplace("sequence", trial.sequence > 0 ? Json(trial.sequence) : Json(nullptr));
  fields.emplace("is_default", trial.is_default);
  fields.emplace("energy_uj", trial.energy_uj > 0 ? Json(trial.energy_uj) : Json(nullptr));
  fields.emplace("fate", name(candidate.fate));
  fields.emplace("gap", trial.verdict == "ok" ? Json(candidate.gap) : Json(nullptr));
  fields.emplace("why", candidate.why);
  return json;
}

Json explanation_json(const ExplainedWinner& explained, const StoredWinner& measured) {
  Json json = to_json(explained.stored, &measured);
  const Explanation& explanation = explained.explanation;
  json["candidates"] = Json::array();
  const auto us_of = [](const cache::TrialRecord* trial) { return trial ? Json(trial->median_us) : Json(nullptr); };
  json["default_us"] = us_of(explanation.standard);
  json["runner_up_us"] = us_of(explanation.runner_up);
  json["measured"] = explanation.measured;
  json["rank_correlation"] = explanation.rank_correlation;
  json.update(summary_json(explained));
  json["predicted_before_winner"] = explanation.place_of_winner ? Json(*explanation.place_of_winner) : Json(nullptr);
  Json::array_t& candidates = json["candidates"].get_ref<Json::array_t&>();
  candidates.reserve(explanation.candidates.size());
  for (const CandidateFate& candidate : explanation.candidates) candidates.push_back(candidate_json(candidate));
  return json;
}

/// The trials of the one winner, as another tuner has them.
ExitCode print_trials(const StoredWinner& winner, const std::optional<cache::TuningRecord>& tuning,
                      const ParameterSpace* space, const std::string& format, const Context& context) {
  if (!tuning) throw CommandError(ExitCode::not_tuned, fmt::format("winner {} has no trials", winner.id));
  print_json(format == "t4" ? t4_results(*tuning) : kernel_tuner_cache(winner, *tuning, space), context);
  return ExitCode::ok;
}

std::string why_without_trials(const StoredWinner& stored, bool was_tried) {
  if (was_tried) return "the occupancy model's first choice: a tuning had no time to compare it with another";
  if (how_text(stored) == "shipped")
    return fmt::format("which came with Hone: nothing was measured here, but at n = {} on {}", measured_at_text(stored),
                       origin_text(stored));
  if (stored.winner.tuned) return "but its trials are not there any more: they were evicted";
  if (how_text(stored) == "nearest")
    return fmt::format("which was tuned for {}: nothing was measured for this one", lender_text(stored));
  return "the occupancy model's first choice: nothing was measured";
}

void say_stale(const StoredWinner& stored, const Problem& problem, const std::filesystem::path& cache,
               const Context& context) {
  const std::string& digest = stored.key.toolchain.family_digest;
  context.out << printable(fmt::format("Stale: found for another source of {} (digest {}) than it has now ({}), and "
                                       "not used any more; tune again with: {}",
                                       problem.family->name(), short_digest(digest),
                                       short_digest(source_digest(problem, stored_facts(stored.key.device))),
                                       tune_command(problem, cache)))
              << "\n\n";
}

void say_misfit(const StoredWinner& stored, const std::filesystem::path& cache, const Context& context) {
  if (const std::string misfit = misfit_of(stored); !misfit.empty())
    context.out << printable(fmt::format("Not used: {}; tune again with: {}", misfit, tune_command(stored, cache)))
                << "\n\n";
}

void explain_untuned(const StoredWinner& stored, bool was_tried, const std::optional<Problem>& problem,
                     const std::filesystem::path& cache, const Context& context) {
  const std::string command = problem && !kernel_file_of(*problem->family).empty()
                                  ? tune_command(*problem, cache)
                                  : tune_command(stored, cache);
  context.out << printable(fmt::format("{} for n = {} on {}", problem_text(stored.key.problem), sizes_text(stored),
                                       device_text(stored.key.device)))
              << '\n'
              << printable(fmt::format("is served by {} in {}, {}", short_policy(stored.winner.candidate.policy),
                                       blocks_text(stored.winner.candidate.max_blocks),
                                       why_without_trials(stored, was_tried)))
              << "\nMeasure with: " << printable(command) << '\n';
}

}  // namespace

void set_up_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* sub = app.add_subcommand("explain");
  // A word that is no ID is refused before the options that exclude an ID are.
  CLI::Option* const id =
      sub->add_option("ID", options.id)->each([](const std::string& text) { parse_winner_id(text); });
  one_of(sub->add_option("--family", options.family)->take_last(), family_words);
  // These describe a problem whose winners are looked for.
  one_of(sub->add_option("--op", options.op)->take_last()->excludes(id), operation_words);
  one_of(sub->add_option("--dtype", options.dtype)->take_last()->excludes(id), dtype_words);
  sub->add_option("--size", options.size)->take_last();
  one_of(sub->add_option("--align", options.alignment)->take_last()->excludes(id), words_in(kAlignmentWords));
  one_of(sub->add_option("--context", options.context)->take_last()->excludes(id), words_in(kLaunchContextNames));
  one_of(sub->add_option("--nan", options.nan)->take_last()->excludes(id), words_in(kNanWords));
  one_of(sub->add_option("--numerics", options.numerics)->take_last()->excludes(id), words_in(kNumericsNames));
  one_of(sub->add_option("--objective", options.objective)->take_last()->excludes(id), words_in(kObjectiveNames));
  one_of(sub->add_option("--device", options.device)->take_last()->excludes(id), words_in(kDeviceKinds));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--all", options.all)->disable_flag_override();
  sub->add_flag("--counters", options.counters)->disable_flag_override();
  one_of(sub->add_option("--format", options.format)->take_last(), words_in(kTrialFormats));
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_explain(const ExplainOptions& options, const Context& context) {
  const std::int64_t id = options.id.empty() ? 0 : parse_winner_id(options.id);
  if (options.id.empty() == options.size.empty())
    throw CommandError(ExitCode::usage,
                       "name the problem: either by the ID of its winner, from hone inspect, or by --size "
                       "with --op and --dtype");
  if (std::ranges::find(kTrialFormats, options.format) == kTrialFormats.end())
    throw CommandError(ExitCode::usage, fmt::format("unknown format '{}'{}; known are {}", printable(options.format),
                                                    did_you_mean(options.format, kTrialFormats),
                                                    fmt::join(kTrialFormats, ", ")));
  const Objective objective = parse_objective(options.objective);
  const std::optional<Problem> problem = id > 0 ? std::nullopt : std::optional(named_problem(options));
  const std::filesystem::path path = required_cache_path(options.cache, context.environment.session_options());
  const cache::Store store(path);
  std::uint64_t damaged = 0;
  const std::vector<StoredWinner> all =
      problem ? store.winners(problem->family->name(), problem->family->operations()[problem->operation], &damaged)
              : store.winners(&damaged);
  say_damaged(path, damaged, context);
  std::vector<StoredWinner> winners;
  if (id > 0) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(winners),
                 [&](const auto& stored) { return stored.id == id; });
  } else {
    winners = winners_on(all, *problem, options.device, objective, path);
  }
  if (winners.empty()) {
    const std::string what = id > 0 ? fmt::format("winner {}", id) : problem_label(*problem);
    throw CommandError(
        id > 0 ? ExitCode::usage : ExitCode::not_tuned,
        fmt::format("nothing is known of {} in {}; {}", what, printable(path.string()),
                    id > 0 ? "see: hone inspect --cache " + printable(shell_quoted(path.string()))
                           : fmt::format("tune it with: hone tune {}{}{} --cache {}",
                                         printable(tune_words(*problem)),
                                         objective == Objective::time ? "" : " --objective energy",
                                         options.device.empty() ? "" : " --device " + options.device,
                                         printable(shell_quoted(path.string())))));
  }
  if (options.format != kTrialFormats[0] && winners.size() > 1)
    throw CommandError(ExitCode::usage, fmt::format("{} devices have a winner; choose one with --device",
                                                    winners.size()));
  const auto begin_winner = [&](const StoredWinner& stored) {
    if (&stored != &winners.front()) context.out << '\n';
    if (problem && !is_of_source(stored, *problem)) say_stale(stored, *problem, path, context);
    say_misfit(stored, path, context);
  };
  Json json{{"cache", path.string()}, {"winners", Json::array()}};
  for (const StoredWinner& stored : winners) {
    // A winner that was taken from another class has its trials there, and none for this one.
    const StoredWinner* measured = stored.winner.tuned ? measured_winner(all, stored) : &stored;
    const std::optional<cache::TuningRecord> tuning = measured ? store.tuning(measured->id) : std::nullopt;
    if (options.format != kTrialFormats[0])
      return print_trials(stored, tuning, problem ? &problem->family->space() : nullptr, options.format, context);
    if (!tuning || (!options.json && !stored.winner.tuned)) {
      if (options.json) {
        Json& entry = json["winners"].emplace_back(to_json(stored, measured));
        entry["candidates"] = Json::array();
        continue;
      }
      begin_winner(stored);
      explain_untuned(stored, tuning.has_value(), problem, path, context);
      continue;
    }
    const Explanation explanation = explain(stored.winner, *tuning);
    const auto is_in_graph = stored.key.problem.launch_context == name(LaunchContext::graph);
    const DeviceCeilings ceilings =
        device_ceilings(stored.key.device, is_in_graph ? LaunchContext::graph : LaunchContext::stream, all)
            .without(measured->id);
    const ExplainedWinner explained{stored, *tuning, explanation, ceilings};
    if (options.json) {
      Json& entry = json["winners"].emplace_back(explanation_json(explained, *measured));
      entry["stale"] = problem ? Json(!is_of_source(stored, *problem)) : Json(nullptr);
      continue;
    }
    begin_winner(stored);
    print_explanation(explained, options.all, context);
  }
  if (options.counters) {
    context.out.flush();
    const std::vector<CountedKernel> kernels =
        count_kernels(winners.front(), path, names_kernel_file(options.family) ? options.family : "", context);
    if (options.json) {
      json["winners"].front()["counted_kernels"] = to_json(kernels);
    } else {
      context.out << '\n';
      print_counters(kernels, context);
    }
  }
  if (options.json) print_json(json, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
