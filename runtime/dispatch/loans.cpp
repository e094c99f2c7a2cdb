#include <hone/sdk/loans.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <utility>

#include <hone/sdk/portfolio.h>

#include "runtime/dispatch/winner_checks.h"
#include "runtime/search/candidates.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

/// See falls_behind(). Of 102 loans between sums and maxima up to two octaves apart, the lender's candidate or, where
/// this rules it out, the model's is 0.7 % behind on average and 4.3 % at worst; with 1.5 it would be 1.8 % and 31 %,
/// and the model's alone is 0.9 % and 5.4 % (H100, CUDA 13.0, 2026-11).
constexpr double kMostFallBehind = 1.01;

/// The same where the bandwidth of the device is not known, and the model's times are a guess.
constexpr double kMostGuessedFallBehind = 1.5;

/// A call that moves this multiple of the last-level cache takes as long as its bytes take. Larger ones do, too, so the
/// winner stays the same (docs/tuning.md has the regret).
constexpr std::int64_t kSaturatingCaches = 4;

/// Bytes of two problems may differ by this share: an index is wider than a value.
constexpr double kSameBytes = 1.0 / 64;

/// SMs and bandwidth of similar devices differ at most by this factor.
constexpr double kMostDeviceRatio = 2;

bool serves_extents(const LoanTerms& terms) {
  return is_within(terms.borrower.extents, terms.lender.winner.sizes);
}

/// True if the lender is saturated, and the borrower is larger in one extent and alike in the others.
bool is_beyond(const LoanTerms& terms) {
  const Problem& lender = terms.lender.problem;
  const auto mine = size_classes(terms.borrower.extents), theirs = size_classes(lender.extents);
  int larger = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i] < theirs[i]) return false;
    larger += mine[i] > theirs[i] ? 1 : 0;
  }
  return larger == 1 && terms.facts.l2_bytes > 0 &&
         lender.family->bytes_moved(lender) >= kSaturatingCaches * terms.facts.l2_bytes;
}

double octaves(const LoanTerms& terms) {
  return shape_distance(terms.borrower.extents, terms.lender.problem.extents);
}

/// The distance to the nearest extents that the lender's winner serves, which need not be near those where it was
/// tuned: of several winners that were tuned at one size, each serves others.
double octaves_to_served(const LoanTerms& terms) {
  Extents nearest = terms.borrower.extents;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const SizeRange& served = terms.lender.winner.sizes[i];
    nearest[i] = std::clamp(nearest[i], served.first, std::max(served.first, served.last));
  }
  return shape_distance(terms.borrower.extents, nearest);
}

bool has_equal_work(const Problem& problem, const Problem& other) {
  const KernelFamily& family = *problem.family;
  const std::string arithmetic = family.arithmetic(problem);
  if (arithmetic.empty() || family.arithmetic(other) != arithmetic) return false;
  const auto bytes = static_cast<double>(family.bytes_moved(problem));
  return std::abs(bytes - static_cast<double>(family.bytes_moved(other))) <= kSameBytes * bytes;
}

/// The lender at the extents of the borrower.
Problem at_borrowers_extents(const LoanTerms& terms) {
  Problem problem = terms.lender.problem;
  problem.extents = terms.borrower.extents;
  problem.pitches = terms.borrower.pitches;
  return problem;
}

/// True if ptxas may reuse registers as it likes, so that the loads of a thread wait for each other in the code of one
/// operation, and not in that of another: at 2^14 floats such a policy takes 2.3 µs for max, and 4.8 µs for sum (H100,
/// CUDA 13.0, 2026-11).
bool leaves_registers_open(const Lender& lender) {
  const ParameterSpace& space = lender.problem.family->space();
  for (std::size_t i = 0; i < space.parameters().size(); ++i) {
    const Parameter& parameter = space.parameters()[i];
    if (parameter.name == "min_blocks")
      return parameter.spell(lender.winner.candidate.policy[static_cast<int>(i)]) == "unset";
  }
  return false;
}

bool is_similar(double value, double other) {
  return value > 0 && other > 0 && std::max(value, other) <= kMostDeviceRatio * std::min(value, other);
}

/// How unlike two devices are: octaves of SMs, bandwidth and cache, and more than those if the architecture is another.
double device_distance(const DeviceFacts& a, const DeviceFacts& b) {
  constexpr double kOtherArchitecture = 4;
  const auto octaves = [](double x, double y) { return x > 0 && y > 0 ? std::abs(std::log2(x / y)) : 0.0; };
  return octaves(a.sm_count, b.sm_count) + octaves(peak_bandwidth_gbps(a), peak_bandwidth_gbps(b)) +
         octaves(static_cast<double>(a.l2_bytes), static_cast<double>(b.l2_bytes)) +
         (a.architecture == b.architecture ? 0 : kOtherArchitecture);
}

constexpr bool always(const LoanTerms&) { return true; }
constexpr bool never(const LoanTerms&) { return false; }

constexpr std::array<LoanKind, 8> kKinds{{
    {.loan = Loan::version,
     .words = "the same problem with another version of the kernel",
     .differs = [](const LoanTerms& t) { return t.lender.other_source; },
     .is_lent = always,
     .asks_model = false,
     .asks_code = true},
    {.loan = Loan::alignment,
     .words = "the same problem with arrays that are aligned otherwise",
     .differs = [](const LoanTerms& t) { return t.borrower.alignment != t.lender.problem.alignment; },
     .is_lent = always,
     .asks_model = false,
     .asks_code = false},
    {.loan = Loan::context,
     .words = "the same problem in the other launch context",
     .differs = [](const LoanTerms& t) { return t.borrower.launch_context != t.lender.problem.launch_context; },
     .is_lent = always,
     .asks_model = true,
     .asks_code = false},
    {.loan = Loan::size,
     .words = "the largest tuned size, which saturates the memory",
     .differs = [](const LoanTerms& t) { return !serves_extents(t) && is_beyond(t); },
     .is_lent = always,
     .asks_model = true,
     .asks_code = true},
    {.loan = Loan::operation,
     .words = "an operation that moves as many bytes with as much arithmetic",
     .differs =
         [](const LoanTerms& t) {
           return t.borrower.operation != t.lender.problem.operation || t.borrower.dtype != t.lender.problem.dtype;
         },
     .is_lent =
         [](const LoanTerms& t) {
           return !leaves_registers_open(t.lender) && has_equal_work(t.borrower, at_borrowers_extents(t));
         },
     .asks_model = false,
     .asks_code = false},
    {.loan = Loan::shape,
     .words = "the nearest tuned shape",
     .differs = [](const LoanTerms& t) { return !serves_extents(t) && !is_beyond(t); },
     .is_lent = [](const LoanTerms& t) { return octaves(t) <= kFarthestServed; },
     .asks_model = true,
     .asks_code = false},
    {.loan = Loan::transfer,
     .words = "predicted from its trials",
     .differs = never,  // nobody is asked for it: hone transfer has stored it
     .is_lent = always,
     .asks_model = false,
     .asks_code = false},
    {.loan = Loan::device,
     .words = "the most similar device",
     .differs = [](const LoanTerms& t) { return t.lender.device.has_value(); },
     .is_lent =
         [](const LoanTerms& t) {
           return is_similar(t.facts.sm_count, t.lender.device->sm_count) &&
                  is_similar(peak_bandwidth_gbps(t.facts), peak_bandwidth_gbps(*t.lender.device));
         },
     .asks_model = false,
     .asks_code = false},
}};

/// The model's time for a candidate, as a multiple of its time for its own first choice.
double modelled_ratio(const DeviceFacts& facts, const Problem& problem, const Candidate& candidate,
                      int resident_blocks) {
  const PolicyRanking ranking = rank_policies(facts, problem);
  if (ranking.policies.empty()) return 1;
  const double us = predict(facts, problem, candidate, resident_blocks).us();
  return std::max(1.0, us / ranking.policies.front().prediction.us());
}

double most_fall_behind(const DeviceFacts& facts) {
  return peak_bandwidth_gbps(facts) > 0 ? kMostFallBehind : kMostGuessedFallBehind;
}

/// True if one of the differences asks for `what`.
bool asks(const LoanTerms& terms, bool LoanKind::*what) {
  return std::any_of(kKinds.begin(), kKinds.end(),
                     [&](const LoanKind& kind) { return kind.*what && kind.differs(terms); });
}

int differences(const LoanTerms& terms) {
  return static_cast<int>(
      std::count_if(kKinds.begin(), kKinds.end(), [&](const LoanKind& kind) { return kind.differs(terms); }));
}

}  // namespace

std::span<const LoanKind> loan_kinds() { return kKinds; }

bool may_differ_by_loans(const Problem& a, const Problem& b) {
  return a.family == b.family && a.numerics == b.numerics && a.nan == b.nan && a.accumulator == b.accumulator &&
         a.result == b.result;
}

Loan loan_between(const LoanTerms& terms) {
  if (!may_differ_by_loans(terms.borrower, terms.lender.problem)) return Loan::none;
  Loan loan = Loan::none;
  for (const LoanKind& kind : kKinds) {
    if (!kind.differs(terms)) continue;
    if (!kind.is_lent(terms)) return Loan::none;
    loan = kind.loan;
  }
  if (loan == Loan::none) return loan;
  const Candidate candidate = lent_candidate(terms);
  const bool is_offered = may_launch(terms.facts, terms.borrower, candidate) &&
                          terms.borrower.family->prune(terms.borrower, candidate.policy, terms.facts).empty();
  return is_offered ? loan : Loan::none;
}

Candidate lent_candidate(const LoanTerms& terms) {
  Candidate candidate = terms.lender.winner.candidate;
  std::int64_t& blocks = candidate.geometry.max_blocks;
  if (!terms.lender.device || candidate.geometry.is_block_per_tile()) return candidate;
  // One block, or one cluster, is no share of the SMs.
  const std::int64_t sms = std::max(terms.lender.device->sm_count, 1);
  if (blocks % sms == 0) blocks = blocks / sms * terms.facts.sm_count;
  return candidate;
}

bool falls_short(const LoanTerms& terms, double compiled_us) {
  if (!asks(terms, &LoanKind::asks_code)) return false;
  const double promised_us =
      predict(terms.facts, terms.borrower, lent_candidate(terms), terms.lender.winner.resident_blocks).us();
  const PolicyRanking ranking = rank_policies(terms.facts, terms.borrower);
  const double first_us = ranking.policies.empty() ? compiled_us : ranking.policies.front().prediction.us();
  return compiled_us > most_fall_behind(terms.facts) * std::max(promised_us, first_us);
}

bool falls_behind(const LoanTerms& terms) {
  if (!asks(terms, &LoanKind::asks_model)) return false;
  const Winner& winner = terms.lender.winner;
  const Candidate candidate = lent_candidate(terms);
  const double most = most_fall_behind(terms.facts);
  const double here = modelled_ratio(terms.facts, terms.borrower, candidate, winner.resident_blocks);
  return here > most &&
         here > most * modelled_ratio(terms.facts, terms.lender.problem, candidate, winner.resident_blocks);
}

void order_lenders(const DeviceFacts& facts, const Problem& borrower, std::vector<Lender>& lenders) {
  using Rank = std::tuple<Loan, int, bool, double, double, double>;
  std::vector<std::pair<Rank, Lender>> ranked;
  for (Lender& lender : lenders) {
    const LoanTerms terms{facts, borrower, lender};
    const Loan loan = loan_between(terms);
    if (loan == Loan::none) continue;
    const Rank rank{loan, differences(terms), lender.stale_driver,
                    lender.device ? device_distance(facts, *lender.device) : 0,
                    loan == Loan::size ? octaves_to_served(terms) : octaves(terms), octaves_to_served(terms)};
    lender.winner.loan = loan;
    ranked.emplace_back(rank, std::move(lender));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  lenders.clear();
  for (auto& [rank, lender] : ranked) lenders.push_back(std::move(lender));
}

std::vector<Problem> problems_with_equal_work(const Problem& problem) {
  std::vector<Problem> problems{problem};
  const KernelFamily& family = *problem.family;
  if (family.arithmetic(problem).empty()) return problems;
  for (std::size_t operation = 0; operation < family.operations().size(); ++operation)
    for (const DTypeInfo& dtype : kDTypes) {
      Problem other = problem;
      other.operation = static_cast<std::uint8_t>(operation);
      other.dtype = dtype.dtype;
      other.pitches = {};
      const bool is_itself = other.operation == problem.operation && other.dtype == problem.dtype;
      if (!is_itself && refusal_of(other).empty() && has_equal_work(problem, other)) problems.push_back(other);
    }
  return problems;
}

}  // namespace hone
