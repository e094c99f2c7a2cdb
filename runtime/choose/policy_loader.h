// PolicyLoader: compiles the policies of a search, ahead where that disturbs nothing, and loads them.
#pragma once

#include <deque>
#include <stop_token>
#include <string>
#include <vector>

#include <hone/device.h>
#include <hone/problem.h>

#include "runtime/choose/compiled.h"
#include "runtime/choose/search_order.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/race.h"

namespace hone {

/// True where compiling does not disturb a measurement that runs meanwhile: not on the host device, where the two would
/// take each other's cores. On a GPU what is timed waits until it has been enqueued, however busy the host is.
bool may_compile_meanwhile(const DeviceFacts& facts);

/// Policies are known by their place in a ranking. Keeps what it has loaded.
class PolicyLoader {
 public:
  /// All references must outlive the loader.
  PolicyLoader(Device& device, const Problem& problem, const std::vector<RankedPolicy>& ranking, BinaryMemo& memo,
               std::stop_token stop)
      : device_(device), problem_(problem), ranking_(ranking), memo_(memo), stop_(std::move(stop)) {}

  /// One outcome for each policy; those that are not begun by `deadline` have not started.
  std::vector<CompileOutcome> compile(const SearchOrder::Wave& wave, Clock::time_point deadline,
                                      const CompileProgress& on_progress);

  /// Compiles one policy, however long it takes.
  CompileOutcome compile(std::size_t place) const;

  /// Compiles policies while something else is done, as long as the result is kept; compile() finds them.
  [[nodiscard]] BinaryMemo::Ahead compile_ahead(const SearchOrder::Wave& wave, Clock::time_point deadline) const;

  /// Loads what was compiled; nullptr when it does not compile or load, and then `why` says so. Throws device_lost.
  const CompiledCode* load(std::size_t place, const CompileOutcome& outcome, Reason& why);

  /// The code that was loaded for the policy of a candidate.
  const CompiledCode& code_of(const Candidate& candidate) const;

  bool has_loaded() const { return !code_.empty(); }

  /// The time that compiling waves has taken so far, in which nothing is measured.
  double compile_ms() const { return compile_ms_; }

 private:
  Unit unit_at(std::size_t place) const { return unit_of(problem_, ranking_[place].policy); }
  std::vector<Unit> units_of(const SearchOrder::Wave& wave) const;

  Device& device_;
  const Problem& problem_;
  const std::vector<RankedPolicy>& ranking_;
  BinaryMemo& memo_;
  const std::stop_token stop_;
  std::deque<CompiledCode> code_;
  double compile_ms_ = 0;
};

}  // namespace hone
