// Session: one device, its loaded plans and its view of the cache. Everything hangs off it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

namespace hone {

/// What a call does when neither memory nor the cache file has a winner for its problem.
enum class MissPolicy : std::uint8_t {
  tune,       ///< tune now, within SessionOptions::tune_budget, and store the winner
  heuristic,  ///< compile the occupancy model's first choice; recorded as untuned
  error,      ///< throw Error(not_tuned)
};

struct SessionOptions {
  /// What to do on a miss. Change it where a call must not take seconds: `heuristic` takes tens of milliseconds.
  MissPolicy on_miss = MissPolicy::tune;

  /// Time to spend per tuned problem.
  std::chrono::milliseconds tune_budget{2000};

  /// The cache file. Empty: no file; winners live as long as the session.
  std::filesystem::path cache_path;

  /// Ask the driver on every call whether pointers are device memory. Costs about a microsecond a pointer; for
  /// tests and for finding a bug.
  bool validate_pointers = false;

  /// Workspaces set aside for stream capture, where nothing may be allocated: one for each captured graph and
  /// stream, 128 KiB each, taken for the session's life.
  int capture_workspaces = 16;

  /// Options with `cache_path` from HONE_CACHE or the XDG rules ($XDG_CACHE_HOME/hone/cache.sqlite, else
  /// ~/.cache/hone/cache.sqlite), `on_miss` from HONE_ON_MISS (tune, heuristic, error) and `validate_pointers` from
  /// HONE_VALIDATE (0 or 1). HONE_CACHE=off means no file. Throws invalid_argument on any other value.
  static SessionOptions from_environment();
};

/// What a session did so far.
struct SessionCounters {
  std::uint64_t cache_hits = 0;      ///< plans loaded from the cache file
  std::uint64_t tunings = 0;
  std::uint64_t heuristics = 0;
  std::uint64_t compiles = 0;        ///< units handed to a compiler
  std::uint64_t cache_failures = 0;  ///< reads or writes of the cache file that failed and were done without
  std::string last_cache_failure;
};

/// A loaded winner with a workspace of its own, for a call site that wants no lookup and for captured graphs: the
/// graph stays valid as long as the Plan lives. Launches of one Plan must be ordered by the caller (one stream, or
/// events). Move-only; keeps the device alive, but must not outlive its Session.
class Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  /// Enqueues the call on `stream`; neither waits nor allocates, and may be captured. `problem` may differ from
  /// the planned one in its extents within winner().sizes, and in its alignment upwards; anything else throws
  /// invalid_argument.
  void launch(const Problem& problem, std::span<void* const> buffers, Stream stream) const;

  const Winner& winner() const;

 private:
  friend class Session;
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The runtime of one device. Thread-safe: any number of threads may call with any streams at once. Construct it
/// once per device and keep it; destroy it only when no launch is pending.
///
/// A failing cache file never fails a call: it is counted, and the session goes on without it.
class Session {
 public:
  explicit Session(std::shared_ptr<Device> device, SessionOptions options = SessionOptions::from_environment());
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Enqueues the fastest known kernel for `problem` on `stream`. `buffers` are in the order of the family's
  /// buffers(). On a hit it looks up, launches and returns: no file, no system call of ours, and no lock, except
  /// that a call of two kernels keeps other threads' calls in the same stream from coming between them.
  ///
  /// On a miss it may read the cache file, compile and measure (MissPolicy), on streams of its own. While `stream` is
  /// being captured the problem is a graph problem, whatever its launch_context says, and nothing is tuned, allocated
  /// or waited for: the graph's winner serves, else the stream's (Winner::launch_context tells), else the heuristic.
  /// prepare() or tune() the graph problem ahead of the capture.
  ///
  /// One workspace belongs to each stream: finish the work of a stream before destroying it. Throws invalid_argument
  /// (refused problem, null or misaligned pointer), not_tuned, compile_failed, device_failed, out_of_memory.
  Choice launch(const Problem& problem, std::span<void* const> buffers, Stream stream);

  /// Makes sure that calls of `problem` will hit, without launching. Calls that will be captured are a problem of their
  /// own: set its launch_context to graph. Where the policy does not tune, a stream's winner serves a graph problem.
  Choice prepare(const Problem& problem);

  /// A Plan for `problem`, found or made as launch() would. Allocates; not during capture.
  Plan make_plan(const Problem& problem);

  /// Tunes `problem` now, whatever is known already, stores every trial and dispatches later calls to the winner.
  Tuning tune(const Problem& problem, const TuningOptions& options);

  const std::shared_ptr<Device>& device() const;
  const SessionOptions& options() const;
  SessionCounters counters() const;

 private:
  friend class Plan;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
