// Exploration: compiles and measures candidates in the order of the occupancy model until the rest cannot win.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <hone/tuning.h>

#include "runtime/choose/compiled.h"
#include "runtime/choose/search_order.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/race.h"

namespace hone {

/// Whether something may be compiled while something is measured: not on the host device, where the two would take each
/// other's cores. On a GPU what is timed waits until it has been enqueued, however busy the host is.
bool may_compile_meanwhile(const DeviceFacts& facts);

/// The units that a tuning of `problem` would compile in its first waves, as far as can be told before it.
std::vector<Unit> first_units(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options);

/// The first half of a tuning. Policies are taken in waves, in the order of SearchOrder. A wave is compiled on all
/// cores, on a GPU while the one before it is measured, unless that would disturb it; what has to wait for too long
/// comes with a later wave, and the rest of this one is measured meanwhile. Of its candidates, the model's choice and
/// the best prediction of each policy that comes first are measured, then the others as long as the surrogate expects
/// them to improve on the leader. The search ends when it expects that of none that is left, when the leader is as fast
/// as memory and enqueueing allow, or with the budget. In the first case the nearest relatives of the leader are
/// measured as well, and of the fastest with each value of a named parameter that is nearly as fast, as long as there
/// is a new one of these: what has been measured tells the surrogate how parameters do on the whole, and less of how
/// they do together. TuningOptions::measure_all and exhaustive measure all, TuningOptions::only what it lists.
class Exploration {
 public:
  /// All references must outlive the exploration.
  Exploration(Device& device, const Problem& problem, const TuningOptions& options, BinaryMemo& memo, Race& race,
              Clock::time_point compile_deadline, Clock::time_point deadline);

  /// Fills in `contenders` and `rejected`, which together hold a record of every policy.
  void run();

  /// Its contenders have been measured, or failed, or were not reached; they stay in place.
  std::deque<Contender>& contenders() { return contenders_; }
  std::vector<Trial>& rejected() { return rejected_; }

  const CompiledCode& code_of(const Candidate& candidate) const;
  SearchEnd end() const { return end_; }
  bool has_compiled() const { return !code_.empty(); }
  bool budget_spent() const { return budget_spent_; }
  double compile_ms() const { return compile_ms_; }  ///< that measuring had to wait for

 private:
  using Wave = SearchOrder::Wave;

  struct Found {
    std::size_t place = 0;
    Trial trial;
    std::size_t point = 0;          ///< in the surrogate
    double gain = 0;                ///< expected, over the leader
    bool must_be_measured = false;  ///< unless the leader is at the roofline
  };

  std::vector<CompileOutcome> compile(const Wave& wave, Clock::time_point deadline) const;
  BinaryMemo::Ahead compile_ahead(const Wave& wave) const;
  Unit unit_at(std::size_t place) const;  ///< by the place in the ranking
  std::vector<Unit> units_of(const Wave& wave) const;
  std::size_t load(const Wave& wave, std::vector<CompileOutcome> outcomes);
  void load(std::size_t place, CompileOutcome outcome);
  void list(std::size_t place);
  CandidateList list_only(const CompiledPolicy& compiled) const;
  bool measures_all() const { return options_.measure_all || options_.exhaustive || !options_.only.empty(); }
  void mark_default();
  void measure();
  void refine();
  void take_relatives(const Candidate& leader);
  bool is_near_relative(const Found& found, const Candidate& leader);
  bool mark_relatives(const Candidate& leader);
  std::vector<Candidate> leaders() const;
  void measure_group(std::span<Found> group);
  void mark_known(const Policy& policy, std::size_t first_found);
  void sort_by_gain(std::span<Found> found);
  bool is_leader_near_roofline() const;
  std::string why_not(const Found& found);
  bool promises_nothing(const Wave& next);
  bool is_done(const Wave& next);
  void reject_rest();
  std::string why_the_rest_is_not() const;
  void report(TuningPhase phase, int done, int total) const;

  Device& device_;
  const Problem& problem_;
  const TuningOptions& options_;
  BinaryMemo& memo_;
  Race& race_;
  const Clock::time_point compile_deadline_;
  const Clock::time_point deadline_;
  const double roofline_us_;
  Clock::time_point measuring_deadline_;

  SearchOrder order_;
  int measured_ = 0;
  std::deque<CompiledCode> code_;
  std::vector<Found> found_;        ///< candidates of the wave
  std::vector<Found> passed_over_;  ///< loaded, and not measured so far
  std::deque<Contender> contenders_;
  std::vector<Trial> rejected_;
  SearchEnd end_ = SearchEnd::everything_searched;
  bool has_candidates_ = false;
  bool has_default_ = false;
  bool budget_spent_ = false;
  int done_ = 0;
  int listed_ = 0;
  double compile_ms_ = 0;
};

}  // namespace hone
