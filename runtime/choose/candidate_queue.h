// CandidateQueue: which of the compiled candidates a search measures next.
#pragma once

#include <cstddef>
#include <vector>

#include <hone/device_facts.h>
#include <hone/tuning.h>

#include "runtime/choose/search_order.h"
#include "runtime/search/candidates.h"

namespace hone {

/// Candidates are measured in groups of this many: what is expected of the others changes with each.
inline constexpr std::size_t kCandidateGroup = 4;

/// A compiled candidate that may be measured.
struct QueuedCandidate {
  std::size_t place = 0;  ///< of its policy in the ranking
  Trial trial;
  std::size_t point = 0;          ///< in the surrogate
  double gain = 0;                ///< expected, as a share of the leader's time
  bool must_be_measured = false;  ///< unless the leader is at the roofline
};

/// Candidates of the policies that were compiled. The model's choice comes first; then what must be measured: the best
/// prediction of each policy that SearchOrder::comes_first(), and the winners of neighbouring problems; then the
/// others, by what the surrogate expects them to improve on the leader. Candidates that were passed over stay at hand:
/// a later leader may make relatives of them. Compiles and measures nothing.
class CandidateQueue {
 public:
  /// All references must outlive the queue.
  CandidateQueue(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options, SearchOrder& order)
      : facts_(facts), problem_(problem), options_(options), order_(order) {}

  /// Adds the candidates of a policy; those that cannot or must not be measured are returned, with their reasons.
  std::vector<Trial> add(std::size_t place, const CompiledPolicy& compiled);

  /// True once a candidate was added.
  bool has_had_any() const { return added_ > 0; }

  /// How many candidates `policies` have, by those of the policies that were added so far.
  double expected_count(std::size_t policies) const;

  /// Puts what was added since the last group into the order of the model; how many candidates there are.
  std::size_t sort();

  /// The next few candidates; none when the queue is empty. With a `leader_us`, those that need not be measured come
  /// in the order of their expected gains over that; without (infinite), in the order of the model.
  std::vector<QueuedCandidate> next_group(double leader_us);

  /// Keeps a candidate that is not measured, for its trial says why.
  void pass_over(QueuedCandidate candidate) { passed_over_.push_back(std::move(candidate)); }

  /// Queues near relatives of `leader` that were passed over, and demands that of each policy that is a near relative
  /// the most promising candidate be measured; false: there is none.
  bool require_relatives(const Candidate& leader, double leader_us);

  /// The trials of those that were passed over. Ends the queue.
  std::vector<Trial> take_passed_over();

 private:
  void mark_known(const Policy& policy, std::size_t first_added);
  void mark_default();
  bool is_near_relative(const QueuedCandidate& candidate, const Candidate& leader, double leader_us);

  const DeviceFacts& facts_;
  const Problem& problem_;
  const TuningOptions& options_;
  SearchOrder& order_;
  std::vector<QueuedCandidate> queued_;
  std::vector<QueuedCandidate> passed_over_;
  std::size_t added_ = 0;     ///< candidates
  std::size_t policies_ = 0;  ///< whose they are
  bool has_default_ = false;
};

}  // namespace hone
