#include "tuner/tune/tune_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <hone/session.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string_view>
#include <system_error>
#include <vector>

#include "cache/place.h"
#include "cache/store.h"
#include "tuner/campaign/campaign.h"
#include "tuner/campaign/campaign_plan.h"
#include "tuner/campaign/compilers.h"
#include "tuner/campaign/device_lock.h"
#include "tuner/campaign/missed.h"
#include "tuner/campaign/problem_options.h"
#include "tuner/campaign/shard.h"
#include "tuner/campaign/worker.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/json_output.h"
#include "tuner/problems/families.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"
#include "tuner/tune/tune_json.h"
#include "tuner/tune/tune_output.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

/// Workers ask it, too, and do without it where it cannot be used, which they tell nobody.
void check_system_cache(const fs::path& path, const Context& context) {
  try {
    cache::Store(path).find({});
  } catch (const cache::StoreError& error) {
    warn_of_failed_cache(error.what(), context);
  }
}

/// Finds out before minutes are spent whether winners can be stored. Makes the folder, as the first winner would.
void check_cache(const fs::path& path) {
  cache::require_writable_place(path);  // a file that is not there yet would not be trusted either
  cache::Store(path).find({});  // throws StoreError where the file cannot be read, or is not trusted with code
  if (!cache::file_exists(path)) return cache::prepare_folder(fs::absolute(path));
  if (access(path.c_str(), W_OK) != 0)
    throw CommandError(
        ExitCode::cache,
        fmt::format("winners cannot be stored in '{}': {}; change its permissions or give --cache PATH",
                    printable(path.string()), std::strerror(errno)));
}

/// Throws CommandError(usage) for a shard of what only one cache file knows: other machines would divide other
/// problems.
std::optional<Shard> chosen_shard(const TuneOptions& options) {
  if (options.shard.empty()) return std::nullopt;
  if (options.missed)
    throw CommandError(ExitCode::usage, "--missed has no shards, since what was missed is in this cache file alone; "
                                        "give --preset, --file or the problems");
  return parse_shard(options.shard);
}

double parse_regret(const std::string& text) {
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  double percent = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error != std::errc{} || end != number.data() + number.size() || !(percent >= 0 && percent <= 100))
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' is no regret: it is a percentage from 0 (each size keeps its own "
                                   "winner) to 100",
                                   printable(text)));
  return percent / 100;
}

/// The command line goes before the file.
CampaignOptions campaign_options(const TuneOptions& options, const CampaignFile& file) {
  CampaignOptions campaign;
  if (file.budget) campaign.budget = *file.budget;
  campaign.total_budget = file.total_budget;
  if (file.inputs) campaign.inputs = *file.inputs;
  if (options.budget) campaign.budget = parse_duration(*options.budget);
  if (options.total_budget) campaign.total_budget = parse_duration(*options.total_budget);
  campaign.again = options.again;
  campaign.exhaustive = options.exhaustive || file.exhaustive.value_or(false);
  if (options.warm) campaign.inputs = InputState::warm;
  campaign.most_regret = parse_regret(options.regret);
  campaign.patience = parse_duration(options.patience);
  return campaign;
}

/// Waits for campaigns on the same devices and cache, in the order of the names: two that want the same ones cannot
/// wait for each other.
std::vector<DeviceLock> lock_devices(const CampaignOptions& campaign, const Context& context) {
  std::vector<std::string> devices = campaign.devices;
  std::sort(devices.begin(), devices.end());
  std::vector<DeviceLock> locks;
  for (const std::string& device : devices)
    locks.emplace_back(campaign.session.cache_path, device, campaign.stop, [&](long process) {
      context.err << fmt::format("hone: waiting for another campaign on {} with this cache{}\n", device,
                                 process > 0 ? fmt::format(" (process {})", process) : "")
                  << std::flush;
    });
  return locks;
}

/// How the campaign ended, as message and exit code. `cache_path`: to be named on standard output; "": not.
ExitCode conclude(const CampaignResult& result, const fs::path& cache_path, const Context& context) {
  if (!result.cache_failure.empty()) {
    context.err << "hone: what was stored before is kept; the same command goes on with the rest\n";
    throw CommandError(ExitCode::cache, fmt::format("winners could not be stored: {}", result.cache_failure));
  }
  if (!result.file_failure.empty()) throw CommandError(ExitCode::input, result.file_failure);
  if (!result.device_failure.empty()) {
    context.err << "hone: what was finished is stored; the same command goes on with the rest\n";
    throw CommandError(ExitCode::device, fmt::format("a device was lost: {}", result.device_failure));
  }
  const bool holds_any = std::ranges::any_of(result.items, [](const CampaignItem& item) {
    return item.outcome == Outcome::tuned || item.outcome == Outcome::kept || item.outcome == Outcome::untuned;
  });
  if (!cache_path.empty() && holds_any)
    context.out << fmt::format("Winners are in {}; see them with: hone inspect --cache {}\n",
                               printable(cache_path.string()), printable(shell_quoted(cache_path.string())));
  if (result.interrupted) {
    context.err << "hone: interrupted; what was finished is stored, the same command goes on with the rest\n";
    return ExitCode::interrupted;
  }
  const auto count = [&](Outcome outcome, bool is_cut_off) {
    return std::ranges::count_if(result.items, [&](const CampaignItem& item) {
      return item.outcome == outcome && item.is_cut_off == is_cut_off;
    });
  };
  const auto untuned = count(Outcome::untuned, false), cut_off = count(Outcome::untuned, true);
  if (untuned > 0)
    context.err << fmt::format("hone: the budget was too small to compare anything for {}: the heuristic's choice "
                               "serves, as untuned, where no winner is stored; give a longer --budget\n",
                               count_text(untuned, "problem"));
  const auto left = cut_off + count(Outcome::not_reached, false) + count(Outcome::not_reached, true);
  if (result.out_of_budget)
    context.err << fmt::format("hone: the total budget is spent before {} had a winner; the same command goes on with "
                               "the rest, or give a longer --total-budget\n",
                               count_text(left, "problem"));
  for (const CampaignItem& item : result.items) {
    if (item.outcome == Outcome::failed) {
      throw CommandError(ExitCode::not_tuned,
                         fmt::format("{} could not be tuned: {}", problem_label(item.problem), item.reason));
    }
  }
  return untuned > 0 ? ExitCode::not_tuned : ExitCode::ok;
}

}  // namespace

void set_up_tune(CLI::App& app, TuneOptions& options) {
  CLI::App* sub = app.add_subcommand("tune");
  add_problem_options(*sub, options.problems);
  sub->add_flag("--missed", options.missed)->disable_flag_override();
  sub->add_option("--shard", options.shard)->take_last();
  one_of(sub->add_option("--device", options.device)->take_last(), words_in(kCampaignDeviceWords));
  sub->add_option("--budget", options.budget)->take_last();
  sub->add_option("--total-budget", options.total_budget)->take_last();
  sub->add_option("--regret", options.regret)->take_last();
  sub->add_option("--patience", options.patience)->take_last();
  one_of(sub->add_option("--objective", options.objective)->take_last(), words_in(kObjectiveNames));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--again", options.again)->disable_flag_override();
  sub->add_flag("--exhaustive", options.exhaustive)->disable_flag_override();
  sub->add_flag("--warm", options.warm)->disable_flag_override();
  sub->add_flag("-q,--quiet", options.quiet)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_tune(const TuneOptions& options, const Context& context) {
  const auto start = context.environment.now();
  // Before any other thread is there: they must inherit who takes Ctrl-C, those of CUDA, too, which looking for devices
  // starts.
  const std::stop_token stop = context.environment.watch_interrupts();
  parse_family(options.problems.family);
  // The arguments are checked before the device and the cache are.
  require_one_source(options.problems, options.missed);
  const std::optional<Shard> shard = chosen_shard(options);
  std::optional<Objective> objective;
  if (options.objective) objective = parse_objective(*options.objective);
  CampaignFile file;
  if (!options.missed) file = choose_problems(options.problems, context.err);
  CampaignOptions campaign = campaign_options(options, file);
  SessionOptions session_options = context.environment.session_options();
  if (objective) session_options.objective = *objective;
  // Winners are compared by time alone, so each size keeps the one with its least energy.
  if (session_options.objective == Objective::energy) campaign.most_regret = 0;
  required_cache_path(options.cache, session_options);
  choose_cache(session_options, options.cache);
  if (session_options.cache_read_only) {
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' is only read, so winners cannot be stored; take ro: away from"
                                   " --cache or HONE_CACHE, or give --cache PATH",
                                   printable(session_options.cache_path.string())));
  }
  const fs::path cache_path = session_options.cache_path;
  check_cache(cache_path);
  for (const fs::path& path : session_options.system_caches) check_system_cache(path, context);
  campaign.devices = parse_devices(options.device);
  campaign.session = session_options;
  campaign.worker = {context.environment.worker_program, std::string(kWorkerCommand)};
  campaign.compiler = {context.environment.worker_program, std::string(kCompilerCommand)};
  campaign.now = context.environment.now;
  campaign.stop = stop;
  const std::vector<DeviceLock> locks = lock_devices(campaign, context);
  // Only now: the campaign that was waited for may have tuned what was missed.
  if (options.missed) file.problems = list_missed(cache::Store(cache_path), session_options.objective);
  std::vector<WeightedProblem> problems = one_per_size_class(file.problems);
  if (problems.empty()) {
    context.err << fmt::format("Nothing was missed, as far as {} tells\n", printable(cache_path.string()));
    return ExitCode::ok;
  }
  if (shard) {
    const std::size_t all = problems.size();
    problems = problems_of_shard(problems, *shard);
    context.err << fmt::format("hone: shard {} of {}: {} of {} problems{}\n", shard->index, shard->count,
                               problems.size(), all, problems.empty() ? ", so nothing is written" : "");
    if (problems.empty()) return ExitCode::ok;
  }
  CampaignResult result;
  {
    TuneProgressPrinter printer(context, campaign, options.quiet);
    result = run_campaign(problems, campaign, printer);
  }
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(context.environment.now() - start);
  if (options.json) print_json(tune_json(result, elapsed, cache_path), context);
  else print_summary(result, elapsed, context);
  return conclude(result, options.json ? fs::path() : cache_path, context);
}

}  // namespace hone::tuner
