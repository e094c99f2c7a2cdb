// Loans: the tuned winners of other classes that may serve a class without one, and in which order.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/kernel_family.h>

namespace hone {

/// A tuned winner, and what it was tuned for.
struct Lender {
  Winner winner;
  Problem problem;  ///< at the extents that the winner was measured at
  std::optional<DeviceFacts> device = {};  ///< where it was tuned, if that is another device than the borrower's
  bool stale_driver = false;               ///< measured under another driver
  bool other_source = false;               ///< shipped, and tuned with other sources of the kernel
};

/// The two parties of a loan.
struct LoanTerms {
  const DeviceFacts& facts;  ///< of the device of the borrower
  const Problem& borrower;
  const Lender& lender;
};

/// One way in which lender and borrower may differ, and the condition under which a winner is lent all the same.
struct LoanKind {
  Loan loan;
  std::string_view words;  ///< what is lent, for messages: "the same array, aligned otherwise"
  bool (*differs)(const LoanTerms& terms);
  bool (*is_lent)(const LoanTerms& terms);
  bool asks_model;  ///< the model must expect as much of the winner: falls_behind()
  bool asks_code;   ///< what is compiled is other code than what was tuned, and must keep its promise: falls_short()
};

/// All kinds, in the order of Loan: lenders of an earlier kind come first.
std::span<const LoanKind> loan_kinds();

/// False if the problems differ in what no loan bridges: family, numerics, NaN policy, or the choice of accumulator and
/// result.
bool may_differ_by_loans(const Problem& a, const Problem& b);

/// The kind of a loan from `lender`: the last in which the two differ. Loan::none if they do not differ, or may not
/// (may_differ_by_loans()), if one of their differences rules a loan out, or if the policy is not valid or pruned for
/// the borrower.
Loan loan_between(const LoanTerms& terms);

/// The candidate of a lender on the borrower's device: a persistent grid has as many blocks on each SM.
Candidate lent_candidate(const LoanTerms& terms);

/// True if one of the differences asks the model, and that expects the lender's winner to be slower by more than 1 %,
/// next to the model's first choice, for the borrower than for the lender: a single block that is the fastest for 2^14
/// elements is not for 2^16. By half if the device's bandwidth is not known.
bool falls_behind(const LoanTerms& terms);

/// True if one of the differences asks for the code, and the model expects `compiled_us` of the borrower's after
/// compiling: more than 1 % longer than it expects of the source, and than of its first choice. ptxas may have put the
/// loads of a thread one after the other. By half if the device's bandwidth is not known.
bool falls_short(const LoanTerms& terms, double compiled_us);

/// Orders the lenders that loan_between() allows, best first, and removes the others: earlier kinds first, then those
/// that differ in fewer ways, then those measured under this driver, then the most similar devices, then those tuned at
/// the nearest sizes (Loan::size: those that serve the nearest), then those that serve the nearest. Sets Winner::loan.
/// Lenders that are alike in all of that keep their order.
void order_lenders(const DeviceFacts& facts, const Problem& borrower, std::vector<Lender>& lenders);

/// The problem itself, then those of the family's other operations and dtypes that move as many bytes with as much
/// arithmetic.
std::vector<Problem> problems_with_equal_work(const Problem& problem);

}  // namespace hone
