// Session::Impl: the table of loaded plans, and how a problem gets into it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hone/error.h>
#include <hone/session.h>

#include "runtime/dispatch/append_only_map.h"
#include "runtime/dispatch/cache_bridge.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/race.h"

namespace hone {

/// A winner that is loaded and ready to launch.
struct LoadedPlan {
  Winner winner;
  LoadedCandidate loaded;
  bool needs_workspace = false;
  bool is_provisional = false;  ///< a makeshift that a call outside of capture replaces by a tuned winner
  Clock::time_point retry_at{};         ///< of a makeshift: not before
  Clock::duration retry_pause{};        ///< of one that was chosen while another process was tuning: until retry_at

  /// Whether it is time to look for something better.
  bool is_due() const { return is_provisional && Clock::now() >= retry_at; }
};

/// A plan and where it came from.
struct Resolved {
  const LoadedPlan* plan = nullptr;
  ChoiceSource source = ChoiceSource::memory;
};

/// What the cache files have for a problem.
struct CachedPlan {
  const LoadedPlan* plan = nullptr;               ///< of a tuned winner
  bool is_misfit = false;                         ///< there is one, but row and code do not fit each other or this
                                                  ///< device
  std::optional<CachedWinner> untuned = {};       ///< else
};

/// A winner that was tuned for a shape of the same problem, and how far that is.
struct Neighbour {
  Winner winner;
  double octaves = 0;  ///< shape_distance()
};

/// The same problem, called in another context.
inline Problem in_context(Problem problem, LaunchContext context) {
  problem.launch_context = context;
  return problem;
}

/// What a trial on `problem` makes known, for all sizes that it serves.
Winner make_winner(const Problem& problem, const Trial& trial, bool tuned);

class Session::Impl {
 public:
  Impl(std::shared_ptr<Device> device, SessionOptions options);

  Choice launch(const Problem& problem, std::span<void* const> buffers, Stream stream);

  /// The plan of a problem: from the table, the cache file, or by the miss policy. Waits while another thread misses.
  Resolved resolve(const Problem& problem, bool capturing);

  Tuning tune(const Problem& problem, TuningOptions options);
  Tuning compare(const Problem& problem, TuningOptions options);
  void adopt(const Tuning& tuning, std::span<const Problem> served);
  void recycle_workspaces() { workspaces_.recycle(); }

  /// Throws invalid_argument for buffers that are null, misaligned, not device memory, or hold what the family refuses,
  /// as far as the options say. For the last it waits for `stream`.
  void check_buffers(const Problem& problem, std::span<void* const> buffers, Stream stream) const;

  const std::shared_ptr<Device>& device() const { return device_; }
  const SessionOptions& options() const { return options_; }
  SessionCounters counters() const;

 private:
  void check_contents(const Problem& problem, const std::vector<BufferSpec>& specs, std::span<void* const> buffers,
                      Stream stream) const;
  Resolved miss(const Problem& problem, bool capturing);
  Resolved choose_unmeasured(const Problem& problem, const std::optional<CachedWinner>& untuned, bool capturing);
  Resolved choose_untuned(const Problem& problem, const std::optional<CachedWinner>& untuned, bool capturing);
  const LoadedPlan& choose_heuristic(const Problem& problem, bool capturing);
  Resolved choose_once(const Problem& problem);
  Resolved use_cached(const Problem& problem, const CachedPlan& cached);
  Resolved postpone(const Problem& problem);
  Error not_tuned(const Problem& problem) const;
  CachedPlan load_cached(const Problem& problem, bool capturing);
  const LoadedPlan* load_cached(const Problem& problem, const CachedWinner& cached, bool capturing);
  std::shared_ptr<const Module> load_checked(const Problem& problem, const CachedWinner& cached);
  std::optional<Resolved> tune_miss(const Problem& problem, bool has_misfit);
  void count_wait();
  bool wait_for(Work work, const Problem& problem, Clock::time_point end);
  const LoadedPlan* tune_claimed(const Problem& problem, bool is_claimed);
  Tuning measure(const Problem& problem, TuningOptions options);
  void compile_ahead(const std::optional<Problem>& next);
  std::vector<Neighbour> neighbours_of(const Problem& problem);
  std::vector<Candidate> starts_for(const Problem& problem);
  std::vector<Trial> nearby(const Problem& problem) const;
  void remember(const Tuning& tuning);
  std::vector<Winner> lenders_for(const Problem& problem);
  const LoadedPlan* borrow(const Problem& problem, const Winner& lender, bool capturing);
  std::shared_ptr<const Binary> code_for(const Problem& problem, const Winner& lender, const Unit& unit);
  Resolved lend_stream_winner(const Problem& graph_problem);
  const LoadedPlan& adopt(const Tuning& tuning, bool is_tuned);
  std::shared_ptr<const Module> load(const Problem& problem, const Winner& winner, const Binary& binary);
  const LoadedPlan& install(const Problem& problem, const Winner& winner, std::shared_ptr<const Module> module,
                            bool capturing);
  bool may_launch(const ProblemClass& problem_class, const Candidate& candidate) const;
  void count_cache_failure(const cache::LayerFailure& failure);

  std::shared_ptr<Device> device_;
  SessionOptions options_;
  mutable std::mutex counters_mutex_;
  SessionCounters counters_;
  WorkspacePool workspaces_;
  CacheBridge cache_;  ///< reports to what is above, until its end
  BinaryMemo memo_;
  AppendOnlyMap<ProblemKey, LoadedPlan> plans_;
  AppendOnlyMap<ProblemKey, Error> uncompilable_;  ///< no policy compiles, which another try does not change
  Problem last_tuned_;
  std::vector<Trial> last_measured_;  ///< of it, best first
  std::optional<ProblemKey> next_;    ///< what is compiled ahead
  BinaryMemo::Ahead ahead_;
  std::mutex miss_mutex_;             ///< one miss at a time: tunings would disturb each other's measurements
};

}  // namespace hone
