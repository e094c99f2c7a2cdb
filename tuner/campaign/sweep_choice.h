// SweepComparison: what candidates take along a size sweep; and the choice of few winners by that. Pure numbers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hone/candidate.h>
#include <hone/sdk/portfolio.h>
#include <hone/tuning.h>

#include "tuner/campaign/size_sweep.h"

namespace hone::tuner {

/// The only extent in which the problems differ; nullopt: there are several, or none.
std::optional<std::size_t> only_differing_axis(std::span<const Problem> problems);

/// The next smaller and larger tuned row; where there is none, the row itself.
std::array<std::size_t, 2> tuned_beside(std::span<const SweepRow> rows, std::size_t row);

class SweepComparison {
 public:
  /// The first `winners` of `candidates`, all different, are winners of tuned rows, the others runners-up.
  SweepComparison(std::size_t rows, std::vector<Candidate> candidates, std::size_t winners);

  const std::vector<Candidate>& candidates() const { return candidates_; }
  std::size_t index_of(const Candidate& candidate) const;

  /// Returns what has to be measured at a row: at a tuned one all winners, at one between those that are near the
  /// fastest at one of the tuned rows beside it, which are measured by then; and the row's runners-up; but none of
  /// SweepRow::slow. Nothing where all are as fast as the fastest beside it.
  std::vector<Candidate> list_compared(std::span<const SweepRow> rows, std::size_t row) const;

  /// `here` and, unless it is empty, `corner` are what the candidates take at a row and at the largest corner of its
  /// box: the worse of both counts. `own`, the row's winner, may serve it even where it cannot run at the corner.
  void record(std::size_t row, const Tuning& here, const Tuning* corner, const Candidate* own);

  /// Nothing but `candidate` may serve the row.
  void record_only(std::size_t row, const Candidate& candidate);

  /// Records SweepRow::slow beside what was recorded.
  void record_slow(std::span<const SweepRow> rows, std::size_t row);

  /// Rows that were not measured count as the next larger one that was.
  void fill_unmeasured(std::span<const SweepRow> rows);

  /// How many times as long as the fastest one there; 0: it may not serve, or was not measured.
  double ratio(std::size_t row, std::size_t candidate) const { return ratios_.at(row, candidate); }

  /// The ratios if whatever is slower than the fastest is as slow as its samples scatter: a regret that is accepted is
  /// one that is found again when it is measured again. Rows that were not measured scatter as the next one that was.
  ShapeTrials ratios_at_most(std::span<const SweepRow> rows) const;

 private:
  std::vector<double> ratios_of(const Tuning& comparison) const;
  std::span<double> ratios_at(std::size_t row);
  std::array<double, 2> ratios_beside(std::span<const SweepRow> rows, std::size_t row, std::size_t candidate) const;

  std::vector<Candidate> candidates_;
  std::size_t winners_ = 0;
  ShapeTrials ratios_;
};

struct SweepChoice {
  std::vector<std::size_t> candidate_of;  ///< of each row; Cover::kNone where nothing may serve
  std::size_t winners = 0;                ///< different ones among them
  double worst_regret = 0;                ///< at the rows that were measured
  double mean_regret = 0;
};

/// Along `axis` by choose_portfolio(), without one by choose_cover().
SweepChoice choose_winners(const SweepComparison& comparison, std::span<const SweepRow> rows,
                           std::optional<std::size_t> axis, double most_regret);

/// The nearest tuned problem whose search found what was chosen for this row. `winners` are those of the problems.
std::size_t nearest_winner(const SweepRow& row, std::span<const Problem> problems, std::span<const Candidate> winners);

/// "n = 1024..4096" of neighbouring sizes, "5 of the 9 shapes": where the row's candidate serves.
std::string served_text(std::span<const SweepRow> rows, std::size_t row, const SweepChoice& choice,
                        std::optional<std::size_t> axis);

/// Appends a candidate unless it is listed.
void add_candidate(const Candidate& candidate, std::vector<Candidate>& to);

std::optional<std::size_t> find_trial(const Tuning& tuning, const Candidate& candidate);

/// Gives a stored tuning the figures that `comparison` found for its winner and for `chosen`, which becomes the winner;
/// `why` is the reason of the former one.
void hand_over(Tuning& tuning, const Tuning& comparison, const Candidate& chosen, const Candidate& former,
               const std::string& why);

}  // namespace hone::tuner
