#include "tuner/tune/tune_output.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/problems/problem_text.h"
#include "tuner/text/color.h"
#include "tuner/text/median.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{100};

/// Reasons that the summary names; hone explain has the rest.
constexpr std::size_t kReasons = 6;

constexpr std::array<std::string_view, kOutcomes> kOutcomeWords{
    "tuned", "kept from the cache", "left untuned", "failed", "not stored", "interrupted", "not reached"};

std::string candidate_text(const CampaignItem& item) {
  return short_policy(item.problem.family->space().to_string(item.candidate.policy));
}

double measured_gbps(const CampaignItem& item) {
  return bandwidth_gbps(item.problem.family->bytes_moved(item.measured_problem), item.median_us);
}

std::string winner_text(const CampaignItem& item, double peak) {
  const double gbps = measured_gbps(item);
  return fmt::format("{}, {}: {} µs, {} GB/s{}{}", candidate_text(item),
                     blocks_text(item.candidate.geometry.max_blocks), us_text(item.median_us), gbps_text(gbps),
                     peak > 0 ? fmt::format(", {} of peak", share_text(gbps, peak)) : "",
                     item.outcome == Outcome::untuned ? " (the only one that the budget allowed for: untuned)"
                     : item.budget_spent              ? " (budget spent)"
                                                      : "");
}

/// The candidates that killed their process, and each reason once: not at all where `said` has it.
std::string left_out_text(const std::vector<std::string>& died, std::string_view said) {
  std::vector<std::pair<std::string_view, std::string>> groups;  // a reason, the candidates
  for (const std::string_view each : died) {
    const std::size_t colon = std::min(each.find(": "), each.size());
    const std::string_view reason = each.substr(std::min(colon + 2, each.size()));
    const auto known = std::ranges::find(groups, reason, &std::pair<std::string_view, std::string>::first);
    if (known == groups.end()) groups.emplace_back(reason, each.substr(0, colon));
    else known->second.append(", ").append(each.substr(0, colon));
  }
  std::string text;
  for (const auto& [reason, candidates] : groups) {
    text += "; left out " + candidates;
    if (said.find(reason) == std::string_view::npos) text.append(": ").append(reason);
  }
  return text;
}

std::string finished_text(const CampaignItem& item, double peak) {
  const std::string label = problem_label(item.problem);
  std::string text = label;
  if (item.outcome == Outcome::tuned || item.outcome == Outcome::untuned) text += ": " + winner_text(item, peak);
  if (item.outcome == Outcome::failed) text += ": FAILED: " + item.reason;
  if (item.outcome == Outcome::not_stored) text += ": NOT STORED: " + item.reason;
  if (item.outcome == Outcome::interrupted) text += ": interrupted";
  return text + left_out_text(item.died, text);
}

bool has_winner(const CampaignItem& item) {
  return item.outcome == Outcome::tuned || item.outcome == Outcome::kept || item.outcome == Outcome::untuned;
}

/// "862..1217", "5793..11585 × 46..90".
std::string serves_text(const Problem& problem) {
  const std::array<SizeRange, 3> ranges = size_ranges(problem.extents);
  const std::size_t count = problem.family->extent_names().size();
  std::string text;
  for (std::size_t i = count == 3 && problem.extents[0] == 1 ? 1 : 0; i < count; ++i)
    text.append(text.empty() ? "" : " × ").append(range_text(ranges[i].first, ranges[i].last));
  return text;
}

std::vector<std::string> summary_row(const CampaignItem& item, const CampaignResult& result) {
  std::vector<std::string> cells{problem_label(item.problem), serves_text(item.problem)};
  if (!has_winner(item)) {
    cells.emplace_back(kOutcomeWords[static_cast<std::size_t>(item.outcome)]);
    cells.resize(11, std::string(kUnknown));
  } else {
    const bool is_new = item.outcome != Outcome::kept;
    const auto count = [&](int value) { return is_new ? fmt::format("{}", value) : std::string(kUnknown); };
    cells.push_back(candidate_text(item));
    cells.push_back(blocks_cell(item.candidate.geometry.max_blocks));
    cells.push_back(us_text(item.median_us));
    cells.push_back(gbps_text(measured_gbps(item)));
    cells.push_back(share_text(measured_gbps(item), result.devices[item.device].peak_gbps));
    cells.push_back(share_text(item.roofline_us, item.median_us));
    cells.push_back(item.default_us > 0 && item.median_us > 0 ? fmt::format("{:.2f}×", item.default_us / item.median_us)
                                                              : std::string(kUnknown));
    cells.push_back(count(item.measured));
    cells.push_back(count(item.rejected));
  }
  if (result.devices.size() > 1) cells.push_back(result.devices[item.device].name);
  return cells;
}

/// How good the model was, what choosing was worth, and what disturbed the measurements.
void print_measuring(const CampaignResult& result, std::ostream& out) {
  std::vector<double> correlations;
  int discarded = 0;
  double log_gain = 0;
  double weights = 0;
  for (const CampaignItem& item : result.items) {
    if (item.measured > 1) correlations.push_back(item.rank_correlation);
    discarded += item.discarded_samples;
    if (item.outcome != Outcome::tuned || item.default_us <= 0 || item.median_us <= 0) continue;
    log_gain += item.weight * std::log(item.default_us / item.median_us);
    weights += item.weight;
  }
  if (weights > 0)
    out << fmt::format("{:.2f}× as fast as the heuristic default (weighted geometric mean)\n",
                       std::exp(log_gain / weights));
  if (!correlations.empty())
    out << fmt::format("model's rank correlation with measurement: {:.2f} (median of {})\n",
                       upper_median(correlations), correlations.size());
  if (discarded > 0) {
    out << fmt::format("{} samples thrown away: the device was throttled or busy with others' work\n", discarded);
  }
}

/// The time of the devices by what they did; parts of less than a hundredth are left out.
std::string times_text(const CampaignTimes& times) {
  using Part = std::pair<double, std::string_view>;
  const std::array parts{Part(times.waiting_for_compiler_ms, "waiting for the compiler"),
                         Part(times.measuring_ms, "measuring"),
                         Part(times.verifying_ms, "verifying"),
                         Part(times.comparing_sizes_ms, "comparing sizes"),
                         Part(times.storing_ms, "storing and the like"),
                         Part(times.hung_ms, "waiting for candidates that hung or crashed"),
                         Part(times.failed_ms, "problems without a winner"),
                         Part(times.idle_ms, "idle")};
  double all_ms = 0;
  for (const auto& part : parts) all_ms += part.first;
  std::string text;
  for (const auto& [ms, what] : parts)
    if (ms >= 0.01 * all_ms && ms > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", share_text(ms, all_ms), what);
  return text;
}

std::string consolidated_text(const SweepResult& sweep) {
  const std::string label = sweep_label(sweep.first);
  if (!sweep.failure.empty()) return fmt::format("{}: each size keeps its own winner: {}", label, sweep.failure);
  return fmt::format("{}: {} for {} sizes (each size's own: {}), at most {:.2f} % behind, {:.2f} % in the mean{}",
                     label, count_text(sweep.winners, "winner"), sweep.sizes, sweep.winners_before,
                     100 * sweep.worst_regret, 100 * sweep.mean_regret,
                     sweep.filled > 0 ? fmt::format("; {} size classes between them served, too", sweep.filled) : "");
}

void print_reasons(const CampaignResult& result, std::ostream& out) {
  ReasonCounts counts;
  for (const CampaignItem& item : result.items)
    for (const ReasonCount& each : item.reasons) counts.add(each);
  const std::vector<ReasonCount> reasons = counts.most_frequent_first();
  if (!reasons.empty()) out << "\nNot measured, or not usable\n";
  Table table({{"count", Align::right}, {"why"}});
  int others = 0;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (i >= kReasons) others += reasons[i].count;
    if (i < kReasons)
      table.add_row(
          {fmt::format("{}", reasons[i].count), fmt::format("{}: {}", reasons[i].verdict, reasons[i].text())});
  }
  if (others > 0) table.add_row({fmt::format("{}", others), "other reasons; see: hone explain"});
  if (!reasons.empty()) table.print(out, 0, 2);
  for (const CampaignItem& item : result.items)
    for (const std::string& died : item.died)
      out << printable(fmt::format("  {}: {}", problem_label(item.problem), died)) << '\n';
}

}  // namespace

TuneProgressPrinter::TuneProgressPrinter(const Context& context, const CampaignOptions& options, bool quiet)
    : context_(context), options_(options), quiet_(quiet), throttle_(kRedrawInterval), status_(context) {}

std::string TuneProgressPrinter::on_device(std::size_t lane) const {
  return devices_.size() > 1 ? fmt::format(" {}:", devices_[lane].name) : "";
}

void TuneProgressPrinter::planned(const std::vector<CampaignDevice>& devices, std::size_t to_tune, std::size_t kept) {
  devices_ = devices;
  progress_.emplace(to_tune, options_.budget, options_.total_budget, now());
  if (quiet_) return;
  std::string names = printable(devices.front().label);
  if (devices.size() > 1) names = fmt::format("{} devices, {} and so on", devices.size(), names);
  if (to_tune == 0) {
    context_.err << fmt::format("Everything is tuned already on {} (--again repeats)", names);
  } else {
    context_.err << fmt::format("Tuning {} on {}", count_text(to_tune, "problem"), names);
    if (kept > 0) context_.err << fmt::format("; {} more tuned already (--again repeats)", kept);
    // Verifying may take a quarter of the budget besides (TuningOptions::budget).
    context_.err << fmt::format("; at most about {}", format_duration(progress_->remaining(now()) * 5 / 4));
  }
  context_.err << std::endl;
}

void TuneProgressPrinter::started(std::size_t lane, const Problem& problem) {
  progress_->begin(problem_label(problem), now(), lane);
  draw();
}

void TuneProgressPrinter::consolidating(std::size_t lane, const Problem& smallest) {
  progress_->begin_other(sweep_label(smallest) + ": comparing winners", lane);
  draw();
}

void TuneProgressPrinter::progressed(std::size_t lane, const TuningProgress& progress) {
  if (!progress_) return;
  progress_->update(progress, lane);
  if (throttle_.pass(now())) draw();
}

void TuneProgressPrinter::finished(const CampaignItem& item, std::size_t lane) {
  if (item.outcome == Outcome::kept) return;
  const std::string position = progress_->position(lane);
  progress_->end(now(), lane);
  if (quiet_) return;
  status_.erase();
  context_.err << position << on_device(lane) << ' ' << printable_lines(finished_text(item, devices_[lane].peak_gbps))
               << std::endl;
}

void TuneProgressPrinter::consolidated(const SweepResult& sweep, std::size_t lane) {
  progress_->end_other(lane);
  if (quiet_) return;
  status_.erase();
  context_.err << printable(consolidated_text(sweep)) << std::endl;
}

void TuneProgressPrinter::warned(const std::string& what) {
  status_.erase();
  context_.err << paint("hone: warning:", Paint::yellow) << ' ' << printable(what) << std::endl;
}

void TuneProgressPrinter::draw() {
  if (const std::size_t columns = quiet_ ? 0 : status_.columns(); columns > 0)
    status_.draw(progress_->line(now(), columns));
}

void print_summary(const CampaignResult& result, std::chrono::milliseconds elapsed, const Context& context) {
  std::vector<Column> columns{{"problem"},
                              {"serves n", Align::right, 6},
                              {"winner"},
                              {"blocks", Align::right, 4},
                              {"µs", Align::right},
                              {"GB/s", Align::right, 1},
                              {"of peak", Align::right, 2, true},
                              {"roofline", Align::right, 8, true},
                              {"vs default", Align::right, 3},
                              {"tried", Align::right, 5},
                              {"rejected", Align::right, 7}};
  if (result.devices.size() > 1) columns.push_back({"device"});
  Table table(columns);
  std::array<int, kOutcomes> counts{};
  double compile_ms = 0;
  double measure_ms = 0;
  for (const CampaignItem& item : result.items) {
    ++counts[static_cast<std::size_t>(item.outcome)];
    compile_ms += item.compile_ms;
    measure_ms += item.measure_ms;
    table.add_row(summary_row(item, result));
  }
  table.print(context.out, context.environment.out_columns());
  print_reasons(result, context.out);
  if (!result.sweeps.empty()) context.out << '\n';
  for (const SweepResult& sweep : result.sweeps) {
    measure_ms += sweep.measure_ms;
    context.out << printable(consolidated_text(sweep)) << '\n';
  }

  const auto duration = [](double ms) { return format_duration(std::chrono::milliseconds{std::llround(ms)}); };
  std::string totals;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0 || i == 0)
      totals += fmt::format("{}{} {}", totals.empty() ? "" : ", ", counts[i], kOutcomeWords[i]);
  }
  // The parts of a time that ended in a failure are not known.
  std::string parts;
  if (compile_ms + measure_ms > 0)
    parts = fmt::format("compiling {}, measuring {}, ", duration(compile_ms), duration(measure_ms));
  context.out << fmt::format("\n{}; {}in all {}\n", totals, parts, format_duration(elapsed));
  if (const std::string times = times_text(result.times); !times.empty())
    context.out << fmt::format("time of the devices: {}\n", times);
  print_measuring(result, context.out);
}

}  // namespace hone::tuner
