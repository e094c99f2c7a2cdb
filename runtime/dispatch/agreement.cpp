// Fingerprints of sessions, and how one takes over the winners of another.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/communicator.h>

#include "cache/digest.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/dispatch/session_impl.h"

namespace hone {
namespace {

/// Names problem classes in the same way in every process. Families may have the same name and other kernels.
class ClassNames {
 public:
  std::string of(const Problem& problem) {
    std::string& digest = digests_[problem.family];
    if (digest.empty()) digest = family_digest(*problem.family);
    return fmt::format("{}\t{}\t{:016x}", problem.family->name(), digest, ProblemKey(problem).packed);
  }

 private:
  std::map<const KernelFamily*, std::string> digests_;
};

std::string text_of(const Problem& problem, const Candidate& candidate) {
  const Geometry& grid = candidate.geometry;
  return fmt::format("{}\t{}\t{}", problem.family->space().to_string(candidate.policy), grid.max_blocks,
                     grid.block_threads);
}

/// The inverse of text_of(); nullopt where the family has no such policy.
std::optional<Candidate> candidate_of(const Problem& problem, std::string_view text) {
  const std::size_t tab = text.find('\t');
  if (tab == std::string_view::npos) return std::nullopt;
  const std::optional<Policy> policy = problem.family->space().parse(text.substr(0, tab));
  if (!policy) return std::nullopt;
  Candidate candidate{*policy, {}};
  const char* const last = text.data() + text.size();
  const auto blocks = std::from_chars(text.data() + tab + 1, last, candidate.geometry.max_blocks);
  if (blocks.ec != std::errc{} || blocks.ptr == last || *blocks.ptr != '\t') return std::nullopt;
  const auto threads = std::from_chars(blocks.ptr + 1, last, candidate.geometry.block_threads);
  if (threads.ec != std::errc{} || threads.ptr != last) return std::nullopt;
  return candidate;
}

/// A line for each class, in their order.
std::string winners_text(const PlanTable& plans) {
  ClassNames names;
  std::vector<std::string> lines;
  for (const Problem& problem : plans.problems())
    lines.push_back(names.of(problem) + '\t' + text_of(problem, plans.find(problem)->winner.candidate));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

std::string Session::Impl::fingerprint() {
  const std::scoped_lock lock(miss_mutex_);
  return cache::Digest().add("winners", winners_text(plans_)).hex();
}

/// The number of winners that changed. `winners` is winners_text() of another session.
int Session::Impl::take_over(std::string_view winners) {
  std::map<std::string, std::string_view, std::less<>> candidates;
  while (!winners.empty()) {
    const std::string_view line = winners.substr(0, winners.find('\n'));
    winners.remove_prefix(std::min(winners.size(), line.size() + 1));
    std::size_t end = 0;
    for (int tabs = 0; tabs < 3; ++tabs) end = line.find('\t', end) + 1;
    candidates.emplace(line.substr(0, end - 1), line.substr(end));
  }
  int changed = 0;
  ClassNames names;
  const std::scoped_lock lock(miss_mutex_);
  const std::vector<Problem> problems = plans_.problems();
  for (const Problem& problem : problems) {
    const auto theirs = candidates.find(names.of(problem));
    if (theirs == candidates.end()) continue;
    const std::optional<Candidate> candidate = candidate_of(problem, theirs->second);
    if (!candidate)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is no policy of {}", theirs->second, problem.family->name()));
    if (*candidate == plans_.find(problem)->winner.candidate) continue;
    tuning_.take_over(problem, *candidate);
    ++changed;
  }
  return changed;
}

int Session::Impl::agree(Communicator& communicator, int from) {
  if (from < 0 || from >= communicator.ranks())
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no rank {} among {} whose winners could be taken",
                                                         from, communicator.ranks()));
  Device& device = *core_.device();
  std::string mine;
  {
    const std::scoped_lock lock(miss_mutex_);
    mine = winners_text(plans_);
  }
  const std::vector<std::string> winners = communicator.exchange(device, mine);
  int changed = 0;
  std::string failure;
  try {
    require_unpinned("agree()");
    changed = take_over(winners[static_cast<std::size_t>(from)]);
  } catch (const Error& error) {
    failure = error.what();
  }
  const std::vector<std::string> failures = communicator.exchange(device, failure);
  for (std::size_t r = 0; r < failures.size(); ++r)
    if (!failures[r].empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("rank {} cannot take the winners of rank {}: {}", r, from, failures[r]));
  return changed;
}

}  // namespace hone
