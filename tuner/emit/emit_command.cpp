#include "tuner/emit/emit_command.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/kernel_family.h>
#include <hone/sdk/cuda_source.h>
#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>

#include <ostream>
#include <vector>

#include "cache/store.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/written_file.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"
#include "tuner/winners/problem_winners.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using cache::StoredWinner;

Problem named_problem(const EmitOptions& options) {
  const std::vector<Problem> problems = list_problems({.family = options.family,
                                                       .ops = options.op,
                                                       .dtypes = options.dtype,
                                                       .sizes = options.size,
                                                       .alignments = options.alignment,
                                                       .context = options.context,
                                                       .nan = options.nan,
                                                       .numerics = options.numerics});
  if (problems.size() == 1) return problems.front();
  throw CommandError(ExitCode::usage, fmt::format("these options name {} problems; one is written at a time, so give "
                                                  "--size (and --op and --dtype)",
                                                  problems.size()));
}

/// The one winner that the present source of the family has.
StoredWinner find_winner(const EmitOptions& options, const Problem& problem, const std::filesystem::path& path,
                         const Context& context) {
  const KernelFamily& family = *problem.family;
  const Objective objective = parse_objective(options.objective);
  std::uint64_t damaged = 0;
  std::vector<StoredWinner> all =
      cache::Store(path).winners(family.name(), family.operations()[problem.operation], &damaged);
  say_damaged(path, damaged, context);
  std::erase_if(all, [&](const StoredWinner& stored) { return !is_of_source(stored, problem); });
  const std::vector<StoredWinner> winners = winners_on(all, problem, options.device, objective, path);
  if (winners.size() == 1) return winners.front();
  if (winners.empty())
    throw CommandError(ExitCode::not_tuned,
                       fmt::format("there is no winner by {} of {} in {} for the source as it is now; tune it "
                                   "with: {}{}",
                                   name(objective), problem_label(problem), printable(path.string()),
                                   printable(tune_command(problem, path)),
                                   objective == Objective::time ? "" : " --objective energy"));
  std::vector<std::string> devices;
  for (const StoredWinner& stored : winners) devices.push_back(device_text(stored.key.device));
  throw CommandError(ExitCode::usage,
                     fmt::format("{} devices have a winner; choose one with --device: {}", winners.size(),
                                 printable(fmt::format("{}", fmt::join(devices, "; ")))));
}

/// The time of a tuned winner, where it was measured: in another class for one that was lent, on another device for one
/// that was shipped, whose spread is not known.
std::string measurement(const StoredWinner& stored) {
  const cache::WinnerRecord& winner = stored.winner;
  if (!winner.tuned) return fmt::format("not measured: {}", how_text(stored));
  return fmt::format("{} µs{} at n = {}, {} GB/s{}", us_text(winner.median_us),
                     winner.spread_us > 0 ? " ± " + format_us(winner.spread_us) : "", measured_at_text(stored),
                     gbps_text(bandwidth_gbps(winner.bytes_moved, winner.median_us)),
                     how_text(stored) == "shipped" ? " on " + origin_text(stored) : "");
}

std::string evidence(const StoredWinner& stored, const Problem& problem) {
  const cache::CandidateRecord& candidate = stored.winner.candidate;
  std::string text = fmt::format("{} for n = {}, on {}\n{} in {}", problem_label(problem), sizes_text(stored),
                                 device_text(stored.key.device), candidate.policy, blocks_text(candidate.max_blocks));
  text += "\n" + measurement(stored);
  if (kernel_file_of(*problem.family).empty()) text += "\nC++20: nvcc -std=c++20";
  return text + fmt::format("\ncompiler {}, driver {}; chosen by Hone " HONE_VERSION, stored.key.toolchain.compiler,
                            stored.key.toolchain.driver);
}

}  // namespace

void set_up_emit(CLI::App& app, EmitOptions& options) {
  CLI::App* sub = app.add_subcommand("emit");
  one_of(sub->add_option("FAMILY", options.family), family_words);
  one_of(sub->add_option("--op", options.op)->take_last(), operation_words);
  one_of(sub->add_option("--dtype", options.dtype)->take_last(), dtype_words);
  sub->add_option("--size", options.size)->take_last();
  one_of(sub->add_option("--align", options.alignment)->take_last(), words_in(kAlignmentWords));
  one_of(sub->add_option("--context", options.context)->take_last(), words_in(kLaunchContextNames));
  one_of(sub->add_option("--nan", options.nan)->take_last(), words_in(kNanWords));
  one_of(sub->add_option("--numerics", options.numerics)->take_last(), words_in(kNumericsNames));
  one_of(sub->add_option("--objective", options.objective)->take_last(), words_in(kObjectiveNames));
  one_of(sub->add_option("--device", options.device)->take_last(), words_in(kDeviceKinds));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  file_name(sub->add_option("-o,--output", options.output)->take_last());
}

ExitCode run_emit(const EmitOptions& options, const Context& context) {
  const Problem problem = named_problem(options);
  require_cuda_source(problem);
  const std::filesystem::path path = required_cache_path(options.cache, context.environment.session_options());
  const StoredWinner stored = find_winner(options, problem, path, context);
  std::string fault;
  const std::optional<Policy> policy = problem.family->space().parse(stored.winner.candidate.policy, &fault);
  if (!policy) throw CommandError(ExitCode::cache, fmt::format("winner {} cannot be read: {}", stored.id, fault));
  const std::string text =
      cuda_source(problem, {*policy, {.max_blocks = stored.winner.candidate.max_blocks}}, evidence(stored, problem));
  WrittenFile file(options.output, context.out, source_files(*problem.family));
  file.stream() << text;
  file.finish();
  return ExitCode::ok;
}

}  // namespace hone::tuner
