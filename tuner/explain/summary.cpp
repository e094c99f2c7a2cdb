#include "tuner/explain/summary.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>

#include <hone/reason.h>

#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/parameter_effects.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using cache::CandidateRecord;

/// Parameters and groups of values that a line has room for.
constexpr std::size_t kMostNamed = 3;

/// The column in which the texts of lines begin.
constexpr std::size_t kTextColumn = 14;

/// One line, or on a terminal of `columns` as many as it takes; 0: no terminal.
void print_line(std::ostream& out, std::size_t columns, std::string_view label, std::string_view text) {
  const std::string line = printable(text);
  const std::size_t width = columns > 2 * kTextColumn ? columns - kTextColumn : line.size();
  out << fmt::format("  {:<{}}", label, kTextColumn - 2);
  std::string_view left = line;
  while (display_width(left) > width) {
    std::size_t end = 0;
    for (std::size_t blank = left.find(' '); blank != std::string_view::npos; blank = left.find(' ', blank + 1)) {
      if (display_width(left.substr(0, blank)) > width && end > 0) break;
      end = blank;
    }
    if (end == 0) break;
    out << left.substr(0, end) << '\n' << std::string(kTextColumn, ' ');
    left.remove_prefix(end + 1);
  }
  out << left << '\n';
}

/// "+5.0 %", or "2.4×" where it is more than twice as long.
std::string cost_text(double cost) { return cost >= 1 ? fmt::format("{:.1f}×", 1 + cost) : gap_text(cost); }

std::string limit_text(const ExplainedWinner& explained) {
  const WinnerLimit limit = explained.limit();
  const DeviceCeilings& ceilings = explained.ceilings;
  const double us = explained.stored.winner.median_us;
  const double gbps = bandwidth_gbps(explained.stored.winner.bytes_moved, us);
  // Ceilings are measured, too: a bound that they give may be above the time of the winner, and is then none.
  const std::string floor =
      limit.roofline_us < us
          ? fmt::format("{} µs at least, {} of the time", us_text(limit.roofline_us), share_text(limit.roofline_us, us))
          : "all of the time";
  if (limit.memory_us <= 0)
    return fmt::format("{}: {} GB/s, and neither the model nor another winner tells what memory allows; a launch takes "
                       "{}",
                       name(limit.limit), gbps_text(gbps), floor);
  return fmt::format("{}: {} GB/s, {} of the {} {}; launch and memory take {}", name(limit.limit), gbps_text(gbps),
                     share_text(gbps, ceilings.read_gbps),
                     ceilings.is_read_measured ? "fastest other winner's" : "model's ceiling of",
                     gbps_text(ceilings.read_gbps), floor);
}

std::string waves_text(const ExplainedWinner& explained) {
  const WinnerLimit limit = explained.limit();
  const std::int64_t blocks = limit.blocks;
  const Waves& waves = limit.waves;
  if (blocks == 0 || waves.slots == 0) return "not known";
  if (waves.whole == 0)
    return fmt::format("less than one: {} of {} that are resident on {}", count_text(blocks, "block"), waves.slots,
                       count_text(explained.ceilings.facts.sm_count, "SM"));
  std::string text = fmt::format("{} of {} blocks", count_text(waves.count(), "wave"), waves.slots);
  if (waves.last_blocks > 0)
    text += fmt::format("; the last has {}, so {} of all slots stay idle", count_text(waves.last_blocks, "block"),
                        percent_text(waves.waste()));
  return text;
}

std::string flight_text(const ExplainedWinner& explained) {
  const std::int64_t in_flight = explained.bytes_in_flight(), needed = explained.ceilings.bytes_in_flight_needed;
  if (in_flight == 0) return "not known";
  std::string text = format_bytes(in_flight) + " per SM";
  if (needed > 0)
    text += fmt::format(
        "; Little's law asks for {}: {}", format_bytes(needed),
        in_flight >= needed ? "enough" : share_text(static_cast<double>(in_flight), static_cast<double>(needed)));
  return text;
}

std::string occupancy_text(const ExplainedWinner& explained) {
  const CandidateRecord& candidate = explained.stored.winner.candidate;
  std::string text = fmt::format("{}: {} × {} threads of {} per SM", percent_text(winner_occupancy(explained.stored)),
                                 count_text(candidate.resident_blocks, "block"), candidate.block_threads,
                                 explained.stored.key.device.max_threads_per_sm);
  if (candidate.registers > 0) text += fmt::format(", {} a thread", count_text(candidate.registers, "register"));
  if (candidate.local_bytes > 0) text += fmt::format(", {} B spilled", candidate.local_bytes);
  return text;
}

/// "last_block" of "… finish=last_block …"; nullopt where the policy has no such parameter.
std::optional<std::string_view> value_in(std::string_view policy, std::string_view parameter) {
  while (!policy.empty()) {
    const std::string_view item = policy.substr(0, policy.find(' '));
    if (item.size() > parameter.size() && item.starts_with(parameter) && item[parameter.size()] == '=')
      return item.substr(parameter.size() + 1);
    policy.remove_prefix(std::min(policy.size(), item.size() + 1));
  }
  return std::nullopt;
}

/// The winner's values, and what the next best and the worst of the others cost.
std::string mattered_text(const ExplainedWinner& explained) {
  std::vector<std::string> parts;
  const std::vector<ParameterEffect> effects = parameter_effects(explained.tuning);
  for (const ParameterEffect& effect : effects) {
    const auto own = value_in(explained.stored.winner.candidate.policy, effect.name);
    if (!own || parts.size() == kMostNamed) continue;
    std::vector<ValueEffect> others;
    std::ranges::copy_if(effect.values, std::back_inserter(others),
                         [&](const ValueEffect& value) { return value.value != *own; });
    if (others.empty()) continue;
    const auto cost = [&](const ValueEffect& value) {
      return cost_text(value.best->median_us / explained.stored.winner.median_us - 1);
    };
    std::string part = fmt::format("{}={} (next {} {}", effect.name, *own, others.front().value, cost(others.front()));
    if (others.size() > 1) part += fmt::format(", worst {} {}", others.back().value, cost(others.back()));
    parts.push_back(part + ")");
  }
  return parts.empty() ? "no parameter was measured with two values" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string untried_text(const std::vector<UntriedValues>& untried) {
  std::vector<std::string> parts;
  for (const UntriedValues& each : untried) {
    if (parts.size() == kMostNamed) break;
    parts.push_back(fmt::format("{}={}{}", each.parameter, fmt::join(each.values, ","),
                                each.reason.empty() ? "" : " (" + each.reason + ")"));
  }
  if (untried.size() > kMostNamed) parts.push_back(fmt::format("and {} more", untried.size() - kMostNamed));
  return parts.empty() ? "every value of every parameter was measured" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string faster_text(double than_us, double us) { return fmt::format("{:.2f}× as fast", than_us / us); }

/// Medians do not decide alone: if that of the fastest other one is lower, this says why it did not win.
std::string runner_up_text(const Explanation& found, double winner_us) {
  const double us = found.runner_up->median_us;
  if (us >= winner_us)
    return fmt::format("{} as the fastest other one ({} µs)", faster_text(us, winner_us), us_text(us));
  const auto fate = std::ranges::find(found.candidates, found.runner_up, &CandidateFate::trial);
  return fmt::format("the lowest median is that of another one, {:.3g} times the winner's ({} µs): {}", us / winner_us,
                     us_text(us), fate->why);
}

std::string gain_text(const ExplainedWinner& explained) {
  const Explanation& found = explained.explanation;
  const double us = explained.stored.winner.median_us;
  std::vector<std::string> parts;
  if (found.standard != nullptr && us > 0)
    parts.push_back(found.standard == found.winner
                        ? "it is the occupancy model's first choice"
                        : fmt::format("{} as the occupancy model's first choice ({} µs)",
                                      faster_text(found.standard->median_us, us), us_text(found.standard->median_us)));
  if (found.runner_up != nullptr && us > 0) parts.push_back(runner_up_text(found, us));
  return parts.empty() ? "nothing else was measured" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string found_text(const ExplainedWinner& explained, std::size_t candidates) {
  const Explanation& found = explained.explanation;
  std::string text = fmt::format("{} of {} candidates measured{}", found.measured, candidates,
                                 explained.tuning.budget_spent ? ", until the budget was spent" : "");
  if (found.winner != nullptr && found.winner->sequence > 0)
    text += fmt::format(", the winner as number {}", found.winner->sequence);
  if (found.place_of_winner)
    text += fmt::format("; the model had put {} before the winner, its rank correlation is {:.2f}",
                        *found.place_of_winner, found.rank_correlation);
  return text;
}

/// A trial may stand for many policies that were left out for one reason.
int policies_of(const cache::TrialRecord& trial) {
  return trial.verdict == "ok" ? 1 : CountedReason::parse(trial.reason).policies;
}

std::string group_text(const CandidateFate& candidate, bool is_by_energy) {
  if (candidate.trial->verdict != "ok") return CountedReason::parse(candidate.trial->reason).reason.general_text();
  switch (candidate.fate) {
    case Fate::won:
      return "serves the problem";
    case Fate::tied:
      return "as fast as can be told";
    case Fate::gave_way:
      return "the winner serves more sizes";
    default:
      if (is_by_energy) return candidate.trial->energy_uj > 0 ? "takes more energy" : "not among the fastest few";
      return candidate.gap < 0 ? "lost side by side, with a lower median" : "slower";
  }
}

}  // namespace

void print_summary(const ExplainedWinner& explained, std::ostream& out, int columns) {
  const auto width = static_cast<std::size_t>(columns);
  const cache::StoredWinner& stored = explained.stored;
  const CandidateRecord& candidate = stored.winner.candidate;
  out << printable(fmt::format("{} for n = {}, alignment {}, on {}", problem_text(stored.key.problem),
                               sizes_text(stored), stored.key.problem.alignment, device_text(stored.key.device)))
      << '\n'
      << printable(fmt::format("is served by {} in {}: {} µs ± {} at n = {}", short_policy(candidate.policy),
                               blocks_text(candidate.max_blocks), us_text(stored.winner.median_us),
                               format_us(stored.winner.spread_us), measured_at_text(stored)))
      << '\n';
  std::size_t candidates = 0;
  for (const cache::TrialRecord& trial : explained.tuning.trials) candidates += policies_of(trial);
  if (const cache::TrialRecord* winner = explained.explanation.winner; winner && winner->energy_uj > 0)
    print_line(out, width, "energy",
               fmt::format("{} µJ a call, the least: of the whole device, idle power included, under a power limit of "
                           "{:.0f} W",
                           energy_text(*winner), explained.tuning.power_limit_w));
  print_line(out, width, "limit", limit_text(explained));
  print_line(out, width, "waves", waves_text(explained));
  print_line(out, width, "in flight", flight_text(explained));
  print_line(out, width, "occupancy", occupancy_text(explained));
  print_line(out, width, "mattered", mattered_text(explained));
  print_line(out, width, "never tried", untried_text(untried_values(explained.stored, explained.tuning)));
  print_line(out, width, "gain", gain_text(explained));
  print_line(out, width, "found", found_text(explained, candidates));
}

void print_groups(const ExplainedWinner& explained, std::ostream& out, int columns) {
  struct Group {
    const CandidateFate* fastest;
    std::string why;
    int count;
  };
  std::vector<Group> groups;
  const cache::TrialRecord* winner = explained.explanation.winner;
  const bool is_by_energy = winner != nullptr && winner->energy_uj > 0;
  for (const CandidateFate& candidate : explained.explanation.candidates) {
    const std::string why = group_text(candidate, is_by_energy);
    const int count = policies_of(*candidate.trial);
    const auto same = std::ranges::find_if(
        groups, [&](const Group& group) { return group.fastest->fate == candidate.fate && group.why == why; });
    if (same == groups.end()) {
      groups.push_back({&candidate, why, count});
      continue;
    }
    same->count += count;
    const double us = candidate.trial->median_us, fastest_us = same->fastest->trial->median_us;
    if (us > 0 && (fastest_us <= 0 || us < fastest_us)) same->fastest = &candidate;
  }
  std::ranges::stable_sort(groups, [](const Group& a, const Group& b) {
    return std::pair(a.fastest->fate, -a.count) < std::pair(b.fastest->fate, -b.count);
  });
  Table table({{"candidates", Align::right},
               {"fate"},
               {"why"},
               {"the fastest of them", Align::left, 2},
               {"µs", Align::right},
               {"gap", Align::right, 1}});
  for (const Group& group : groups) {
    const cache::TrialRecord& trial = *group.fastest->trial;
    const bool is_measured = trial.median_us > 0;
    table.add_row({fmt::format("{}", group.count), std::string(name(group.fastest->fate)), group.why,
                   is_measured ? short_policy(trial.candidate.policy) : std::string(kUnknown), us_text(trial.median_us),
                   is_measured && trial.verdict == "ok" && group.fastest->fate != Fate::won
                       ? gap_text(group.fastest->gap)
                       : std::string(kUnknown)});
  }
  table.print(out, columns);
}

}  // namespace hone::tuner
