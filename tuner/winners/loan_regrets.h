// loan_regrets(): what it costs to serve a class with the winner of another one, from the trials of a cache file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/sdk/loans.h>
#include <hone/tuning.h>

#include "cache/records.h"

namespace hone::tuner {

/// A tuned class: its winner, measured there, and the trials of its tuning.
struct TunedClass {
  Lender winner;            ///< Lender::device says where
  std::vector<Trial> trials;
};

/// One loan that was judged: the borrower has a trial of the lender's candidate.
struct JudgedLoan {
  Problem borrower;
  Problem lender;
  double regret = 0;  ///< the time of the lender's candidate ÷ the fastest trial's − 1, at the borrower
  std::optional<double> model_regret = {};  ///< the same of the model's first choice there, if that was measured
};

/// All loans of one kind.
struct LoanRegrets {
  std::string kind;             ///< name(Loan), or "model": the model's first choice, for comparison
  std::vector<JudgedLoan> judged;
  int unjudged = 0;             ///< there is a lender, but its candidate was not measured at the borrower

  double mean() const;        ///< 0 without a judged loan
  double model_mean() const;  ///< of the model's first choices at the same borrowers
  const JudgedLoan* worst() const;  ///< nullptr without one
};

/// For each class, as if it were untuned, and each kind of loan: the lender of that kind that a session would ask
/// first. One row for each kind, in the order in which they are asked, then the model's.
std::vector<LoanRegrets> loan_regrets(const std::vector<TunedClass>& classes);

/// The winners that were measured in their class, with the trials that `tuning_of` finds. Those whose family, policy or
/// words are not those of today are left out.
std::vector<TunedClass> tuned_classes(
    const std::vector<cache::StoredWinner>& winners,
    const std::function<std::optional<cache::TuningRecord>(const cache::StoredWinner&)>& tuning_of);

}  // namespace hone::tuner
