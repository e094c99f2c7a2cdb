#include "tuner/tune_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <string_view>
#include <vector>

#include "tuner/quantities.h"
#include "tuner/report.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{100};

/// Back to the first column and clear to the end of the line (ECMA-48 EL).
constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string candidate_text(const CampaignItem& item) {
  return short_variant(item.problem.family->space().to_string(item.candidate.variant));
}

double measured_gbps(const CampaignItem& item) {
  return bandwidth_gbps(item.problem.family->bytes_moved(item.measured_problem), item.median_us);
}

std::string winner_text(const CampaignItem& item, const DeviceFacts& facts) {
  const std::int64_t blocks = item.candidate.geometry.max_blocks;
  const double gbps = measured_gbps(item);
  const double peak = peak_bandwidth_gbps(facts);
  return fmt::format("{}, {} block{}: {} µs, {} GB/s{}{}", candidate_text(item), blocks, blocks == 1 ? "" : "s",
                     us_text(item.median_us), gbps_text(gbps),
                     peak > 0 ? fmt::format(", {} of peak", share_text(gbps, peak)) : "",
                     item.budget_spent ? " (budget spent)" : "");
}

std::string finished_text(const CampaignItem& item, const DeviceFacts& facts) {
  const std::string label = problem_label(item.problem);
  switch (item.outcome) {
    case Outcome::tuned:
      return fmt::format("{}: {}", label, winner_text(item, facts));
    case Outcome::failed:
      return fmt::format("{}: FAILED: {}", label, item.reason);
    case Outcome::interrupted:
      return fmt::format("{}: interrupted", label);
    case Outcome::kept:
    case Outcome::not_reached:
      break;
  }
  return label;
}

std::vector<std::string> summary_row(const CampaignItem& item, double peak_gbps) {
  const SizeRange range = size_range(size_class(item.problem.extents[0]));
  std::vector<std::string> cells{problem_label(item.problem), range_text(range.first, range.last)};
  if (item.outcome != Outcome::tuned && item.outcome != Outcome::kept) {
    const std::string_view what = item.outcome == Outcome::failed        ? "failed"
                                  : item.outcome == Outcome::interrupted ? "interrupted"
                                                                         : "not reached";
    cells.emplace_back(what);
    cells.resize(10, std::string(kUnknown));
    return cells;
  }
  const bool tuned = item.outcome == Outcome::tuned;
  const auto count = [&](int value) { return tuned ? fmt::format("{}", value) : std::string(kUnknown); };
  cells.push_back(candidate_text(item));
  cells.push_back(fmt::format("{}", item.candidate.geometry.max_blocks));
  cells.push_back(us_text(item.median_us));
  cells.push_back(gbps_text(measured_gbps(item)));
  cells.push_back(share_text(measured_gbps(item), peak_gbps));
  cells.push_back(item.default_us > 0 && item.median_us > 0 ? fmt::format("{:.2f}×", item.default_us / item.median_us)
                                                            : std::string(kUnknown));
  cells.push_back(count(item.measured));
  cells.push_back(count(item.rejected));
  return cells;
}

/// How good the model was, and what disturbed the measurements.
void print_measuring(const CampaignResult& result, std::ostream& out) {
  std::vector<double> correlations;
  int discarded = 0;
  for (const CampaignItem& item : result.items) {
    if (item.measured > 1) correlations.push_back(item.rank_correlation);
    discarded += item.discarded_samples;
  }
  if (!correlations.empty()) {
    const auto middle = correlations.begin() + static_cast<std::ptrdiff_t>(correlations.size() / 2);
    std::nth_element(correlations.begin(), middle, correlations.end());
    out << fmt::format("model's rank correlation with measurement: {:.2f} (median of {})\n", *middle,
                       correlations.size());
  }
  if (discarded > 0) {
    out << fmt::format("{} samples thrown away: the device was throttled or busy with others' work\n", discarded);
  }
}

}  // namespace

std::string problem_label(const Problem& problem) {
  std::string label = fmt::format("{} {} {}", problem.family->operations()[problem.operation], info(problem.dtype).name,
                                  format_size(problem.extents[0]));
  if (problem.alignment != kMaxAlignment) label += fmt::format(" align {}", problem.alignment);
  if (problem.launch_context == LaunchContext::graph) label += " graph";
  return label;
}

TuneProgressPrinter::TuneProgressPrinter(const Context& context, const DeviceFacts& facts,
                                         const CampaignOptions& options, bool quiet)
    : context_(context), facts_(facts), options_(options), quiet_(quiet), throttle_(kRedrawInterval) {}

TuneProgressPrinter::~TuneProgressPrinter() { erase(); }

void TuneProgressPrinter::planned(std::size_t to_tune, std::size_t kept) {
  progress_.emplace(to_tune, options_.budget, options_.total_budget, now());
  if (quiet_) return;
  const std::string device = printable(facts_.name);
  if (to_tune == 0) {
    context_.err << fmt::format("Everything is tuned already on {} (--again repeats)", device);
  } else {
    context_.err << fmt::format("Tuning {} problem{} on {}", to_tune, to_tune == 1 ? "" : "s", device);
    if (kept > 0) context_.err << fmt::format("; {} more tuned already (--again repeats)", kept);
    context_.err << fmt::format("; at most about {}", format_duration(progress_->remaining(now())));
  }
  context_.err << std::endl;
}

void TuneProgressPrinter::started(const Problem& problem) {
  progress_->begin(problem_label(problem), now());
  draw();
}

void TuneProgressPrinter::progressed(const TuningProgress& progress) {
  progress_->update(progress);
  if (throttle_.pass(now())) draw();
}

void TuneProgressPrinter::finished(const CampaignItem& item) {
  if (item.outcome == Outcome::kept) return;
  const std::string position = progress_->position();
  progress_->end(now());
  if (quiet_) return;
  erase();
  context_.err << position << ' ' << printable(finished_text(item, facts_)) << std::endl;
}

void TuneProgressPrinter::draw() {
  // Asked each time: terminals are resized. The last column stays free, or some terminals wrap.
  const int columns = context_.environment.err_columns();
  if (quiet_ || columns <= 1) return;
  context_.err << kEraseLine << progress_->line(now(), static_cast<std::size_t>(columns) - 1) << std::flush;
  drawn_ = true;
}

void TuneProgressPrinter::erase() {
  if (drawn_) context_.err << kEraseLine << std::flush;
  drawn_ = false;
}

void print_summary(const CampaignResult& result, const DeviceFacts& facts, std::chrono::milliseconds elapsed,
                   const Context& context) {
  Table table({{"problem"},
               {"serves n", Align::right, 6},
               {"winner"},
               {"blocks", Align::right, 4},
               {"µs", Align::right},
               {"GB/s", Align::right, 1},
               {"of peak", Align::right, 2},
               {"vs default", Align::right, 3},
               {"tried", Align::right, 5},
               {"rejected", Align::right, 7}});
  std::array<int, 5> counts{};
  double compile_ms = 0;
  double measure_ms = 0;
  for (const CampaignItem& item : result.items) {
    ++counts[static_cast<std::size_t>(item.outcome)];
    compile_ms += item.compile_ms;
    measure_ms += item.measure_ms;
    table.add_row(summary_row(item, peak_bandwidth_gbps(facts)));
  }
  table.print(context.out, context.environment.out_columns());

  const auto duration = [](double ms) { return format_duration(std::chrono::milliseconds{std::llround(ms)}); };
  constexpr std::array<std::string_view, 5> kWords{"tuned", "kept from the cache", "failed", "interrupted",
                                                   "not reached"};
  std::string totals;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0 || i == 0) totals += fmt::format("{}{} {}", totals.empty() ? "" : ", ", counts[i], kWords[i]);
  }
  context.out << fmt::format("\n{}; compiling {}, measuring {}, in all {}\n", totals, duration(compile_ms),
                             duration(measure_ms), format_duration(elapsed));
  print_measuring(result, context.out);
}

}  // namespace hone::tuner
