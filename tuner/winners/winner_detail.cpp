#include "tuner/winners/winner_detail.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <hone/problem.h>
#include <hone/sdk/loans.h>
#include <hone/tune_arguments.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <ostream>

#include "cache/shipped_winners.h"
#include "tuner/problems/families.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/misfit.h"

namespace hone::tuner {
namespace {

constexpr std::size_t kRunnersUp = 10;

/// ProblemRecord::numerics where nothing else was asked for.
constexpr std::string_view kUsualNumerics = "fast";

std::string date_text(std::int64_t unix_seconds) {
  std::tm utc{};
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  if (gmtime_r(&seconds, &utc) == nullptr) return std::string(kUnknown);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", utc);
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

void print_field(std::ostream& out, std::string_view label, std::string_view value) {
  if (!value.empty()) out << fmt::format("  {:<12}{}\n", label, printable(value));
}

void print_key(const cache::StoredWinner& stored, const Context& context) {
  const cache::KeyRecord& key = stored.key;
  std::ostream& out = context.out;
  out << printable(fmt::format("Winner {}: {} for n = {}, alignment {}", stored.id, problem_text(key.problem),
                               sizes_text(stored), key.problem.alignment))
      << "\n\n";
  print_field(out, "device", device_text(key.device));
  print_field(out, "identity", key.device.identity);
  print_field(out, "driver", key.toolchain.driver);
  print_field(out, "compiler", key.toolchain.compiler);
  print_field(out, "family", fmt::format("{}, digest {}", key.problem.family, key.toolchain.family_digest));
  print_field(out, "numerics", key.problem.numerics);
  print_field(out, "context", key.problem.launch_context);
  print_field(out, "objective", key.problem.objective);
  print_field(out, "stored",
              fmt::format("{}, {} ago", date_text(stored.created_at),
                          format_age(context.environment.unix_time() - stored.created_at)));
}

/// Which extents of a winner are worth showing.
std::array<bool, 3> shown_extents(const cache::StoredWinner& stored) {
  const cache::ProblemRecord& problem = stored.key.problem;
  std::array<bool, 3> shown{true, false, false};
  if (const FamilyRow* row = find_family(problem.family)) {
    const std::size_t count = row->family().extent_names().size();
    const bool is_batch_of_one = count == 3 && problem.sizes[0] == cache::RangeRecord{1, 1};
    for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = i < count && !(i == 0 && is_batch_of_one);
    return shown;
  }
  for (std::size_t i = 1; i < shown.size(); ++i) {
    const cache::RangeRecord& range = problem.sizes[i];
    shown[i] = range.first > 1 || range.last < 1 || stored.winner.tuned_extents[i] != 1;
  }
  return shown;
}

std::string resources_text(const cache::CandidateRecord& candidate) {
  const std::string smem = fmt::format("{} B of shared memory a block", candidate.static_smem_bytes);
  if (candidate.registers == 0) return smem;  // of the host no registers are known
  return fmt::format("{} registers and {} B of local memory a thread, {}", candidate.registers, candidate.local_bytes,
                     smem);
}

/// Says what the winner takes, or why no time is shown.
std::string measured_text(const cache::StoredWinner& stored, const cache::StoredWinner* measured,
                          const std::filesystem::path& cache) {
  const std::string_view how = how_text(stored);
  if (how == "tuned")
    return fmt::format("{} µs ± {} at n = {}: {} GB/s{}", us_text(winner_us(stored)),
                       format_us(stored.winner.spread_us), measured_at_text(stored), gbps_text(winner_gbps(stored)),
                       stored.key.device.peak_bandwidth_gbps > 0
                           ? fmt::format(", {} of the device's",
                                         share_text(winner_gbps(stored), stored.key.device.peak_bandwidth_gbps))
                           : "");
  if (how == "lent")
    return fmt::format("not in this class but at n = {}: {}", measured_at_text(stored),
                       measured ? fmt::format("see winner {}", measured->id) : "that winner is not stored any more");
  if (how == "shipped")
    return fmt::format("not here, but at n = {} on {}; measure here with: {}", measured_at_text(stored),
                       origin_text(stored), tune_command(stored, cache));
  if (how == "nearest")
    return fmt::format("never: what was tuned for {}; measure with: {}", lender_text(stored),
                       tune_command(stored, cache));
  return "never: the occupancy model's first choice; measure with: " + tune_command(stored, cache);
}

void print_candidate(const cache::StoredWinner& stored, const cache::StoredWinner* measured,
                     const std::filesystem::path& cache, std::ostream& out) {
  const cache::CandidateRecord& candidate = stored.winner.candidate;
  print_field(out, "candidate", candidate.policy);
  if (const std::string misfit = misfit_of(stored); !misfit.empty())
    print_field(out, "not used", fmt::format("{}; tune again with: {}", misfit, tune_command(stored, cache)));
  print_field(out, "grid",
              fmt::format("{}, {} threads each", blocks_text(candidate.max_blocks), candidate.block_threads));
  print_field(out, "resources", resources_text(candidate));
  print_field(out, "occupancy",
              fmt::format("{}: {} × {} threads of {} per SM", percent_text(winner_occupancy(stored)),
                          count_text(candidate.resident_blocks, "resident block"), candidate.block_threads,
                          stored.key.device.max_threads_per_sm));
  print_field(out, "measured", measured_text(stored, measured, cache));
  print_field(out, "binary", format_bytes(stored.binary_bytes));
}

std::string note_of(const cache::TrialRecord& trial, const cache::StoredWinner& stored) {
  const bool is_winner = trial.candidate.policy == stored.winner.candidate.policy &&
                         trial.candidate.max_blocks == stored.winner.candidate.max_blocks;
  std::string note = is_winner ? "winner" : "";
  if (trial.is_default) note += note.empty() ? "default" : ", default";
  if (trial.verdict != "ok") note += (note.empty() ? "" : ", ") + trial.verdict + ": " + first_line(trial.reason);
  return note;
}

std::vector<std::string> trial_row(std::size_t rank, const cache::TrialRecord& trial,
                                   const cache::StoredWinner& stored) {
  const cache::CandidateRecord& candidate = trial.candidate;
  const auto count = [](std::int64_t value) { return value > 0 ? fmt::format("{}", value) : std::string(kUnknown); };
  return {
      fmt::format("{}", rank),
      short_policy(candidate.policy),
      blocks_cell(candidate.max_blocks),
      count(candidate.registers),
      percent_text(occupancy(candidate.resident_blocks, candidate.block_threads, stored.key.device.max_threads_per_sm)),
      trial.bytes_in_flight_per_sm > 0 ? format_bytes(trial.bytes_in_flight_per_sm) : std::string(kUnknown),
      us_text(trial.predicted_us),
      us_text(trial.median_us),
      trial.median_us > 0 ? format_us(trial.spread_us) : std::string(kUnknown),
      trial.median_us > 0 && stored.winner.median_us > 0 ? gap_text(trial.median_us / stored.winner.median_us - 1)
                                                         : std::string(kUnknown),
      count(trial.samples),
      energy_text(trial),
      note_of(trial, stored)};
}

void print_trials(const cache::StoredWinner& stored, const cache::TuningRecord& tuning, bool all,
                  const Context& context) {
  Table table({{"#", Align::right},
               {"candidate"},
               {"blocks", Align::right, 2},
               {"regs", Align::right, 5, true},
               {"occupancy", Align::right, 3, true},
               {"in flight/SM", Align::right, 6},
               {"predicted µs", Align::right, 4},
               {"µs", Align::right},
               {"± µs", Align::right, 7},
               {"gap", Align::right},
               {"samples", Align::right, 8},
               {"µJ", Align::right, 1, true},
               {"note"}});
  std::size_t rank = 0;
  for (const cache::TrialRecord& trial : tuning.trials) {
    if (!all && (trial.verdict != "ok" || rank == kRunnersUp)) continue;
    table.add_row(trial_row(++rank, trial, stored));
  }
  const auto measured = std::count_if(tuning.trials.begin(), tuning.trials.end(),
                                      [](const cache::TrialRecord& trial) { return trial.verdict == "ok"; });
  const auto seconds = [](double ms) { return format_duration(std::chrono::milliseconds{std::llround(ms)}); };
  context.out << fmt::format("\n{} candidates, {} measured; compiling {}, measuring {}{}\n", tuning.trials.size(),
                             measured, seconds(tuning.compile_ms), seconds(tuning.measure_ms),
                             tuning.budget_spent ? ", budget spent" : "");
  table.print(context.out, context.environment.out_columns(), 2);
  if (tuning.power_limit_w > 0)
    context.out << fmt::format(
        "\nµJ: energy of a call of the whole device, idle power included, under a power limit of "
        "{:.0f} W\n",
        tuning.power_limit_w);
}

void print_reasons(const std::vector<cache::TrialRecord>& trials, const Context& context) {
  const std::vector<ReasonCount> reasons = count_reasons(trials);
  if (reasons.empty()) return;
  context.out << "\nNot measured, or not usable\n";
  Table table({{"count", Align::right}, {"verdict"}, {"reason"}});
  for (const ReasonCount& reason : reasons) {
    table.add_row({fmt::format("{}", reason.count), reason.verdict, reason.text()});
  }
  table.print(context.out, 0, 2);
}

}  // namespace

std::string problem_text(const cache::ProblemRecord& problem) {
  std::string text = fmt::format("{} {} {}", problem.family, problem.operation, problem.dtype);
  std::string_view numerics = problem.numerics;  // "fast", "reproducible, NaN ignored"
  if (numerics.starts_with(kUsualNumerics)) numerics.remove_prefix(kUsualNumerics.size());
  if (numerics.starts_with(", ")) numerics.remove_prefix(2);
  if (!numerics.empty()) text.append(" ").append(numerics);
  if (problem.launch_context == name(LaunchContext::graph)) text += " graph";
  if (problem.objective != name(Objective::time)) text += " by " + problem.objective;
  return text;
}

std::string energy_text(const cache::TrialRecord& trial) {
  if (trial.energy_uj <= 0) return std::string(kUnknown);
  return fmt::format("{:.4g} ± {:.2g}", trial.energy_uj, trial.energy_spread_uj);
}

std::string device_text(const cache::DeviceRecord& device) {
  std::string text =
      fmt::format("{} ({}, {}): {}", device.name, device.kind, device.architecture, count_text(device.sm_count, "SM"));
  if (device.peak_bandwidth_gbps > 0) text += fmt::format(", {} GB/s", gbps_text(device.peak_bandwidth_gbps));
  return text;
}

std::string sizes_text(const cache::StoredWinner& stored) { return sizes_text(stored, stored.key.problem.sizes); }

std::string sizes_text(const cache::StoredWinner& stored, const std::array<cache::RangeRecord, 3>& sizes) {
  const std::array<bool, 3> shown = shown_extents(stored);
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (shown[i]) text.append(text.empty() ? "" : " × ").append(range_text(sizes[i].first, sizes[i].last));
  return text;
}

std::string measured_at_text(const cache::StoredWinner& stored) {
  const std::array<bool, 3> shown = shown_extents(stored);
  std::string text;
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (shown[i]) text += fmt::format("{}{}", text.empty() ? "" : " × ", stored.winner.tuned_extents[i]);
  return text;
}

Extents extents_of_class(const cache::StoredWinner& stored) {
  Extents extents = stored.winner.tuned_extents;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const auto [first, last] = stored.key.problem.sizes[axis];
    if (extents[axis] < first || extents[axis] > last) extents[axis] = first + (last - first) / 2;
  }
  return extents;
}

std::string tune_command(const cache::StoredWinner& stored, const std::filesystem::path& cache) {
  const std::optional<Problem> problem = problem_of(stored.key.problem, extents_of_class(stored));
  const std::string arguments = problem ? tune_arguments(*problem) : "";
  if (arguments.empty()) return "Session::tune()";  // of a program's own family
  const std::string& objective = stored.key.problem.objective;
  return fmt::format("hone tune {}{}{} --cache {}", arguments,
                     objective == name(Objective::time) ? "" : " --objective " + objective,
                     stored.winner.tuned && !cache::is_shipped(stored.winner) ? " --again" : "",
                     shell_quoted(cache.string()));
}

std::string short_digest(std::string_view digest) { return std::string(digest.substr(0, 7)); }

std::string_view how_text(const cache::StoredWinner& stored) {
  const bool is_of_its_class = cache::is_within(stored.winner.tuned_extents, stored.key.problem.sizes);
  if (cache::is_shipped(stored.winner)) return "shipped";
  if (stored.winner.tuned) return is_of_its_class ? "tuned" : "lent";
  return is_of_its_class && stored.winner.lender.empty() ? "heuristic" : "nearest";
}

std::string lender_text(const cache::StoredWinner& stored) {
  const std::string& text = stored.winner.lender;
  const std::size_t mark = text.find(": ");
  for (const LoanKind& kind : loan_kinds())
    if (mark != std::string::npos && text.substr(0, mark) == name(kind.loan))
      return fmt::format("{}, {}", text.substr(mark + 2), kind.words);
  return fmt::format("{}, the nearest tuned shape", measured_at_text(stored));
}

std::string origin_text(const cache::StoredWinner& stored) {
  return stored.winner.lender.substr(cache::kShippedMark.size());
}

bool is_measured(const cache::StoredWinner& stored) { return how_text(stored) == "tuned"; }

const cache::StoredWinner* measured_winner(const std::vector<cache::StoredWinner>& all,
                                           const cache::StoredWinner& stored) {
  if (cache::is_within(stored.winner.tuned_extents, stored.key.problem.sizes)) return &stored;
  const cache::StoredWinner* found = nullptr;
  for (const cache::StoredWinner& other : all) {
    if (!is_measured(other) || other.winner.tuned_extents != stored.winner.tuned_extents) continue;
    cache::ProblemRecord same_but_sizes = other.key.problem;
    same_but_sizes.sizes = stored.key.problem.sizes;
    const bool has_same_sources = other.key.toolchain.compiler == stored.key.toolchain.compiler &&
                                  other.key.toolchain.family_digest == stored.key.toolchain.family_digest;
    if (same_but_sizes == stored.key.problem && other.key.device == stored.key.device && has_same_sources)
      found = &other;
  }
  return found;
}

double winner_occupancy(const cache::StoredWinner& stored) {
  return occupancy(stored.winner.candidate.resident_blocks, stored.winner.candidate.block_threads,
                   stored.key.device.max_threads_per_sm);
}

double winner_us(const cache::StoredWinner& stored) { return is_measured(stored) ? stored.winner.median_us : 0; }

double winner_gbps(const cache::StoredWinner& stored) {
  return bandwidth_gbps(stored.winner.bytes_moved, winner_us(stored));
}

std::vector<ReasonCount> count_reasons(const std::vector<cache::TrialRecord>& trials) {
  ReasonCounts counts;
  for (const cache::TrialRecord& trial : trials)
    if (trial.verdict != "ok") {
      const CountedReason why = CountedReason::parse(trial.reason);
      counts.add(trial.verdict, why.reason, why.policies);
    }
  return counts.most_frequent_first();
}

void print_detail(const cache::StoredWinner& stored, const cache::StoredWinner* measured,
                  const std::filesystem::path& cache, const std::optional<cache::TuningRecord>& tuning, bool all,
                  const Context& context) {
  print_key(stored, context);
  context.out << '\n';
  print_candidate(stored, measured, cache, context.out);
  if (!tuning) return;
  print_trials(stored, *tuning, all, context);
  if (!all) print_reasons(tuning->trials, context);
}

}  // namespace hone::tuner
