#include "tuner/winners/loan_regrets.h"

#include <hone/kernel_family.h>

#include <algorithm>
#include <numeric>

#include "tuner/problems/stored_trials.h"
#include "tuner/problems/problem_text.h"
#include "tuner/winners/stored_facts.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

bool has_time(const Trial& trial) { return trial.verdict == Verdict::ok && trial.median_us > 0; }

double fastest_us(const TunedClass& tuned) {
  double fastest = 0;
  for (const Trial& trial : tuned.trials)
    if (has_time(trial) && (fastest == 0 || trial.median_us < fastest)) fastest = trial.median_us;
  return fastest;
}

/// The time of the trial for which `is_meant`; 0 if it was not measured.
template <class IsMeant>
double trial_us(const TunedClass& tuned, const IsMeant& is_meant) {
  const auto found = std::find_if(tuned.trials.begin(), tuned.trials.end(),
                                  [&](const Trial& trial) { return has_time(trial) && is_meant(trial); });
  return found == tuned.trials.end() ? 0 : found->median_us;
}

void judge(LoanRegrets& row, const TunedClass& borrower, const Problem& lender, double us) {
  if (us <= 0) {
    ++row.unjudged;
    return;
  }
  const double model_us = trial_us(borrower, [](const Trial& trial) { return trial.is_default; });
  JudgedLoan& loan = row.judged.emplace_back(
      JudgedLoan{.borrower = borrower.winner.problem, .lender = lender, .regret = us / fastest_us(borrower) - 1});
  if (model_us > 0) loan.model_regret = model_us / fastest_us(borrower) - 1;
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// All other classes that may lend to `borrower`, best first.
std::vector<Lender> lenders_of(const TunedClass& borrower, const std::vector<TunedClass>& classes) {
  const DeviceFacts& facts = *borrower.winner.device;
  std::vector<Lender> lenders;
  for (const TunedClass& tuned : classes) {
    if (&tuned == &borrower) continue;
    Lender& lender = lenders.emplace_back(tuned.winner);
    if (tuning_identity(*lender.device) == tuning_identity(facts)) lender.device.reset();
  }
  order_lenders(facts, borrower.winner.problem, lenders);
  return lenders;
}

}  // namespace

double LoanRegrets::mean() const {
  std::vector<double> regrets;
  for (const JudgedLoan& loan : judged) regrets.push_back(loan.regret);
  return mean_of(regrets);
}

double LoanRegrets::model_mean() const {
  std::vector<double> regrets;
  for (const JudgedLoan& loan : judged)
    if (loan.model_regret) regrets.push_back(*loan.model_regret);
  return mean_of(regrets);
}

const JudgedLoan* LoanRegrets::worst() const {
  const auto worst = std::max_element(judged.begin(), judged.end(), [](const JudgedLoan& a, const JudgedLoan& b) {
    return a.regret < b.regret;
  });
  return worst == judged.end() ? nullptr : &*worst;
}

std::vector<LoanRegrets> loan_regrets(const std::vector<TunedClass>& classes) {
  std::vector<LoanRegrets> rows;
  for (const LoanKind& kind : loan_kinds()) rows.push_back({.kind = std::string(name(kind.loan)), .judged = {}});
  rows.push_back({.kind = "model", .judged = {}});
  for (const TunedClass& borrower : classes) {
    if (fastest_us(borrower) == 0) continue;
    const DeviceFacts& facts = *borrower.winner.device;
    const std::vector<Lender> lenders = lenders_of(borrower, classes);
    for (std::size_t i = 0; i < loan_kinds().size(); ++i) {
      const LoanKind& kind = loan_kinds()[i];
      const auto first = std::find_if(lenders.begin(), lenders.end(), [&](const Lender& lender) {
        return lender.winner.loan == kind.loan && !falls_behind({facts, borrower.winner.problem, lender});
      });
      if (first == lenders.end()) continue;
      const Candidate lent = lent_candidate({facts, borrower.winner.problem, *first});
      judge(rows[i], borrower, first->problem,
            trial_us(borrower, [&](const Trial& trial) { return trial.candidate == lent; }));
    }
    judge(rows.back(), borrower, borrower.winner.problem,
          trial_us(borrower, [](const Trial& trial) { return trial.is_default; }));
  }
  return rows;
}

std::vector<TunedClass> tuned_classes(
    const std::vector<cache::StoredWinner>& winners,
    const std::function<std::optional<cache::TuningRecord>(const cache::StoredWinner&)>& tuning_of) {
  std::vector<TunedClass> classes;
  for (const cache::StoredWinner& stored : winners) {
    if (!is_measured(stored)) continue;
    const std::optional<Problem> problem = problem_of(stored.key.problem, stored.winner.tuned_extents);
    if (!problem) continue;
    const std::optional<Policy> policy = problem->family->space().parse(stored.winner.candidate.policy);
    const std::optional<cache::TuningRecord> tuning = policy ? tuning_of(stored) : std::nullopt;
    if (!tuning) continue;
    TunedClass& tuned = classes.emplace_back();
    tuned.winner.problem = *problem;
    tuned.winner.device = stored_facts(stored.key.device);
    tuned.winner.winner = {.candidate = {*policy, {.max_blocks = stored.winner.candidate.max_blocks}},
                           .resident_blocks = stored.winner.candidate.resident_blocks,
                           .tuned = true,
                           .median_us = stored.winner.median_us,
                           .launch_context = problem->launch_context,
                           .tuned_extents = problem->extents,
                           .sizes = size_ranges(problem->extents)};
    for (const cache::TrialRecord& record : tuning->trials)
      if (const std::optional<Trial> trial = trial_of(record, *problem)) tuned.trials.push_back(*trial);
  }
  return classes;
}

}  // namespace hone::tuner
