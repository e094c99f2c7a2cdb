#include "runtime/choose/candidate_queue.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/search/model.h"

namespace hone {
namespace {

Prediction predict_compiled(const DeviceFacts& facts, const Problem& problem, const Candidate& candidate,
                            const CompiledPolicy& compiled) {
  return predict(facts, shape_of(problem, compiled), problem.family->bytes_moved(problem), compiled.resident_blocks,
                 candidate.geometry, problem.launch_context);
}

/// Why a candidate that was asked for by name cannot be measured; none if it can.
Reason why_impossible(const DeviceFacts& facts, const Problem& problem, const Candidate& candidate,
                      const CompiledPolicy& compiled, std::size_t workspace_bytes) {
  const WorkShape shape = problem.family->shape(problem, compiled.policy);
  const std::size_t workspace = problem.family->workspace_bytes(problem, candidate);
  if (compiled.resident_blocks == 0) return ReasonCode::no_block_fits;
  if (shape.one_block && candidate.geometry.max_blocks != shape.cluster_blocks)
    return {ReasonCode::other_grid, {double(shape.cluster_blocks)}};
  if (shape.cooperative && candidate.geometry.max_blocks != facts.sm_count)
    return {ReasonCode::other_grid, {double(facts.sm_count)}};
  if (workspace > workspace_bytes)
    return {ReasonCode::workspace, {static_cast<double>(workspace), static_cast<double>(workspace_bytes)}};
  return {};
}

CandidateList list_all(const DeviceFacts& facts, const Problem& problem, const CompiledPolicy& compiled,
                       const TuningOptions& options) {
  return list_candidates(facts, problem, std::span(&compiled, 1), options.workspace_bytes, pruning_of(options));
}

/// The candidates of a policy that are to be compared, whether or not they would be listed for this problem: a grid
/// that is larger than the work is cut down to it.
CandidateList list_named(const DeviceFacts& facts, const Problem& problem, const CompiledPolicy& compiled,
                         const TuningOptions& options) {
  CandidateList list;
  for (const Candidate& candidate : options.only) {
    if (candidate.policy != compiled.policy) continue;
    if (candidate.geometry.max_blocks == 0) return list_all(facts, problem, compiled, options);
    Trial trial{.candidate = candidate, .resources = compiled.resources, .resident_blocks = compiled.resident_blocks};
    trial.reason = why_impossible(facts, problem, candidate, compiled, options.workspace_bytes);
    const bool is_possible = trial.reason.empty();
    if (is_possible) {
      const Prediction prediction = predict_compiled(facts, problem, candidate, compiled);
      trial.bytes_in_flight_per_sm = prediction.bytes_in_flight_per_sm;
      trial.predicted_us = prediction.us();
      trial.verdict = Verdict::ok;
    }
    (is_possible ? list.candidates : list.rejected).push_back(std::move(trial));
  }
  return list;
}

/// The entry that excludes a candidate; nullptr: none does.
const ExcludedCandidate* exclusion_of(const Candidate& candidate, const std::vector<ExcludedCandidate>& excluded) {
  const auto at = std::find_if(excluded.begin(), excluded.end(), [&](const ExcludedCandidate& out) {
    return out.candidate == candidate ||
           (out.candidate.geometry.max_blocks == 0 && out.candidate.policy == candidate.policy);
  });
  return at == excluded.end() ? nullptr : &*at;
}

}  // namespace

std::vector<Trial> CandidateQueue::add(std::size_t place, const CompiledPolicy& compiled) {
  CandidateList list = options_.only.empty() ? list_all(facts_, problem_, compiled, options_)
                                             : list_named(facts_, problem_, compiled, options_);
  std::vector<Trial> left_out;
  const std::size_t first_added = queued_.size();
  for (Trial& trial : list.candidates) {
    if (const ExcludedCandidate* const excluded = exclusion_of(trial.candidate, options_.excluded)) {
      trial.verdict = Verdict::failed;
      trial.reason = excluded->reason;
      left_out.push_back(std::move(trial));
      continue;
    }
    const Prediction prediction = predict_compiled(facts_, problem_, trial.candidate, compiled);
    const std::size_t point = order_.surrogate().add(trial.candidate, prediction);
    queued_.push_back({.place = place, .trial = std::move(trial), .point = point});
  }
  if (order_.comes_first(place) && first_added < queued_.size()) queued_[first_added].must_be_measured = true;
  mark_known(compiled.policy, first_added);
  added_ += queued_.size() - first_added;
  ++policies_;
  std::move(list.rejected.begin(), list.rejected.end(), std::back_inserter(left_out));
  return left_out;
}

double CandidateQueue::expected_count(std::size_t policies) const {
  if (policies_ == 0) return 0;
  return static_cast<double>(added_) * static_cast<double>(policies) / static_cast<double>(policies_);
}

/// A neighbour's winner must be measured; where its geometry makes no sense for this problem, the best one of its
/// policy.
void CandidateQueue::mark_known(const Policy& policy, std::size_t first_added) {
  if (first_added == queued_.size()) return;
  for (const Candidate& known : options_.start_from) {
    if (known.policy != policy) continue;
    const auto same = std::find_if(queued_.begin() + static_cast<std::ptrdiff_t>(first_added), queued_.end(),
                                   [&](const QueuedCandidate& each) { return each.trial.candidate == known; });
    (same != queued_.end() ? *same : queued_[first_added]).must_be_measured = true;
  }
}

/// The model's choice is that of choose_by_model(), as far as policies have been compiled.
void CandidateQueue::mark_default() {
  if (has_default_ || queued_.empty() || !options_.only.empty()) return;
  std::map<std::size_t, QueuedCandidate*> first;  // of each policy, by its place
  for (QueuedCandidate& each : queued_) first.try_emplace(each.place, &each);
  QueuedCandidate* best = nullptr;
  int choices = 0;
  for (const auto& [place, each] : first) {
    if (best && (choices == kMostFirstChoices || !may_be_better(order_.ranking()[place], best->trial.predicted_us)))
      break;
    if (!best || each->trial.predicted_us < best->trial.predicted_us) best = each;
    ++choices;
  }
  best->trial.is_default = true;
  best->must_be_measured = true;
  has_default_ = true;
}

std::size_t CandidateQueue::sort() {
  mark_default();
  std::stable_sort(queued_.begin(), queued_.end(), [](const QueuedCandidate& a, const QueuedCandidate& b) {
    if (a.trial.is_default != b.trial.is_default) return a.trial.is_default;
    if (a.must_be_measured != b.must_be_measured) return a.must_be_measured;
    return a.trial.predicted_us < b.trial.predicted_us;
  });
  return queued_.size();
}

std::vector<QueuedCandidate> CandidateQueue::next_group(double leader_us) {
  if (std::isfinite(leader_us)) {
    const auto optional = std::find_if(queued_.begin(), queued_.end(),
                                       [](const QueuedCandidate& each) { return !each.must_be_measured; });
    for (auto each = optional; each != queued_.end(); ++each)
      each->gain = order_.surrogate().expected_gain(each->point, leader_us);
    std::stable_sort(optional, queued_.end(),
                     [](const QueuedCandidate& a, const QueuedCandidate& b) { return a.gain > b.gain; });
  }
  const auto end = queued_.begin() + static_cast<std::ptrdiff_t>(std::min(kCandidateGroup, queued_.size()));
  std::vector<QueuedCandidate> group(std::move_iterator(queued_.begin()), std::move_iterator(end));
  queued_.erase(queued_.begin(), end);
  return group;
}

bool CandidateQueue::require_relatives(const Candidate& leader, double leader_us) {
  const auto relatives =
      std::stable_partition(passed_over_.begin(), passed_over_.end(),
                            [&](const QueuedCandidate& each) { return !is_near_relative(each, leader, leader_us); });
  std::move(relatives, passed_over_.end(), std::back_inserter(queued_));
  passed_over_.erase(relatives, passed_over_.end());

  const auto expected_us = [&](const QueuedCandidate& each) { return order_.surrogate().expected_us(each.point); };
  std::map<std::size_t, QueuedCandidate*> best;  // by policy
  for (QueuedCandidate& each : queued_) {
    if (!is_near_relative(each, leader, leader_us)) continue;
    QueuedCandidate*& other = best[each.place];
    if (!other || expected_us(each) < expected_us(*other)) other = &each;
  }
  for (const auto& [place, candidate] : best) candidate->must_be_measured = true;
  return !best.empty();
}

bool CandidateQueue::is_near_relative(const QueuedCandidate& candidate, const Candidate& leader, double leader_us) {
  return order_.is_near_relative(candidate.trial.candidate.policy, leader.policy,
                                 order_.surrogate().expected_us(candidate.point), leader_us);
}

std::vector<Trial> CandidateQueue::take_passed_over() {
  std::vector<Trial> trials;
  for (QueuedCandidate& candidate : passed_over_) trials.push_back(std::move(candidate.trial));
  passed_over_.clear();
  return trials;
}

}  // namespace hone
