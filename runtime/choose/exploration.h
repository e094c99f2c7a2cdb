// Exploration: compiles and measures candidates in the order of the occupancy model until the rest cannot win.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <hone/tuning.h>

#include "runtime/choose/compiled.h"
#include "runtime/choose/model_error.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/race.h"
#include "runtime/search/candidates.h"

namespace hone {

/// The units that a tuning of `problem` would compile in its first wave, as far as the ranking alone decides.
std::vector<Unit> first_units(const DeviceFacts& facts, const Problem& problem);

/// The first half of a tuning. Variants are taken in waves: first the model's choice, those that won at neighbouring
/// sizes (TuningOptions::start_from), then the ranking from top to bottom. A wave is compiled on all cores, on a GPU
/// while the one before it is measured, unless that would disturb it. Of its candidates, the model's choice and the
/// neighbours' winners are measured, then the others in the order of their predictions. A candidate is left out when
/// its prediction, made as optimistic as the model's error so far allows, lies above the leader. The search ends when
/// that holds for the best of the rest, when the leader is as fast as memory and enqueueing allow, when the family's
/// share of candidates has been measured (KernelFamily::share_to_measure()) and the last of them did not improve on the
/// leader, or with the budget. TuningOptions::exhaustive measures all, TuningOptions::only what it lists.
class Exploration {
 public:
  /// All references must outlive the exploration.
  Exploration(Device& device, const Problem& problem, const TuningOptions& options, BinaryMemo& memo, Race& race,
              Clock::time_point compile_deadline, Clock::time_point deadline);

  /// Fills in `contenders` and `rejected`, which together hold a record of every variant.
  void run();

  /// Its contenders have been measured, or failed, or were not reached; they stay in place.
  std::deque<Contender>& contenders() { return contenders_; }
  std::vector<Trial>& rejected() { return rejected_; }

  const CompiledCode& code_of(const Candidate& candidate) const;
  const ModelError& model_error() const { return error_; }
  SearchEnd end() const { return end_; }
  bool budget_spent() const { return budget_spent_; }
  double compile_ms() const { return compile_ms_; }  ///< that measuring had to wait for

 private:
  using Wave = std::vector<std::size_t>;  ///< of variants, by their place in the ranking

  struct Found {
    std::size_t place = 0;
    Trial trial;
    bool must_be_measured = false;  ///< whatever the model says: the default, and neighbours' winners
  };

  std::vector<std::size_t> order_variants();
  Wave next_wave() const;
  std::vector<CompileOutcome> compile(const Wave& wave, bool in_background) const;
  void keep_only();
  void load(std::size_t place, CompileOutcome outcome);
  void list(std::size_t place);
  CandidateList list_only(const CompiledVariant& compiled) const;
  bool measures_all() const { return options_.exhaustive || !options_.only.empty(); }
  void mark_default();
  void measure();
  void measure_group(std::span<Found> group);
  void mark_known(const Variant& variant, std::size_t first_found);
  bool cannot_win(double predicted_us) const;
  bool has_settled() const;
  bool is_near_roofline() const;
  std::string why_it_cannot_win(double predicted_us) const;
  std::string why_not(double predicted_us) const;
  double best_of_the_rest_us() const;
  bool is_done();
  void reject_rest();
  void report(TuningPhase phase, int done, int total) const;
  bool compiles_ahead() const;

  Device& device_;
  const Problem& problem_;
  const TuningOptions& options_;
  BinaryMemo& memo_;
  Race& race_;
  const Clock::time_point compile_deadline_;
  const Clock::time_point deadline_;

  std::vector<RankedVariant> ranking_;
  std::vector<Unit> units_;             ///< of `ranking_`
  std::vector<std::size_t> to_search_;  ///< places in the ranking, in the order of the search
  std::vector<bool> is_probe_;          ///< of `ranking_`: its best candidate is measured whatever the model says
  std::size_t searched_ = 0;            ///< of `to_search_`
  int candidates_ = 0;                  ///< of all variants, as far as occupancy is known before compiling
  int measured_ = 0;
  int leader_since_ = 0;                ///< `measured_` when the leader was last improved on
  double leader_us_ = 0;                ///< then; 0 before the first
  std::deque<CompiledCode> code_;
  std::vector<Found> found_;  ///< candidates of the wave
  std::deque<Contender> contenders_;
  std::vector<Trial> rejected_;
  ModelError error_;
  SearchEnd end_ = SearchEnd::everything_searched;
  bool has_candidates_ = false;
  bool has_default_ = false;
  bool budget_spent_ = false;
  int done_ = 0;
  int listed_ = 0;
  double compile_ms_ = 0;
};

}  // namespace hone
