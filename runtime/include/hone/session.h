// Session: one device, its loaded plans and its view of the cache. Everything hangs off it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

namespace hone {

/// What a call does when neither memory nor the cache file has a winner for its problem.
enum class MissPolicy : std::uint8_t {
  tune,  ///< tune now, within SessionOptions::tune_budget, and store the winner; where another process is tuning the
         ///< problem, wait for its winner, but no longer than two budgets: then as `heuristic`, and look again later
  heuristic,  ///< take the winner of the nearest tuned shape, or compile the model's first choice; recorded as untuned
  error,      ///< throw Error(not_tuned)
};

struct SessionOptions {
  /// What to do on a miss. Change it where a call must not take seconds: `heuristic` takes tens of milliseconds.
  MissPolicy on_miss = MissPolicy::tune;

  /// Time to spend per tuned problem.
  std::chrono::milliseconds tune_budget{2000};

  /// The cache file. Empty: no file; winners live as long as the session.
  std::filesystem::path cache_path;

  /// Bytes that the cache file may grow to; a publication beyond it evicts: code before trials before winners, the
  /// longest unused first. 0: no limit. A limit in the file itself (`hone cache prune --limit`) goes before.
  std::int64_t cache_max_bytes = std::int64_t{256} << 20;

  /// Only read the cache file: neither winners nor notes of what was missed are written, and no tuning is claimed.
  bool cache_read_only = false;

  /// Further cache files, asked in this order after `cache_path` and never written: what an image or a package ships.
  std::vector<std::filesystem::path> system_caches = {};

  /// Run code that a cache file holds. When off, winners found there are compiled from our own templates: about 50 ms
  /// each, and the files need not be trusted. Turn it off where others may write to a cache that you have to read.
  bool load_binaries = true;

  /// Told about a cache file that cannot be used, once for each file, with its path and the reason. Called from the
  /// thread that met it; must not call the session.
  std::function<void(std::string_view)> report_cache_failure = {};

  /// Ask the driver on every call whether pointers are device memory, at about a microsecond a pointer, and check
  /// inputs that say where others are read, such as the offsets of segments: that waits for the stream and copies them
  /// to the host. For tests and for finding a bug. While a stream is captured contents cannot be checked.
  bool validate_pointers = false;

  /// Workspaces set aside for stream capture, where nothing may be allocated: one for each captured graph and
  /// stream, 1 MiB each, taken for the session's life.
  int capture_workspaces = 16;

  /// Options from the environment:
  /// - HONE_CACHE: the cache file, as `<path>`, `rw:<path>` or `ro:<path>` (cache_read_only); `rw` and `ro` alone mean
  ///   the usual place, by the XDG rules: $XDG_CACHE_HOME/hone/cache.sqlite, else ~/.cache/hone/cache.sqlite. `off`
  ///   means no file at all, system_caches included.
  /// - HONE_CACHE_PATH: system_caches, separated by `:`; of a folder, the file cache.sqlite in it. Without it,
  ///   /usr/local/share/hone and /usr/share/hone.
  /// - HONE_CACHE_MAX_BYTES: cache_max_bytes, a number, also with Ki, Mi or Gi behind it.
  /// - HONE_BINARIES: load_binaries, `on` or `off`.
  /// - HONE_ON_MISS: on_miss, `tune`, `heuristic` or `error`.
  /// - HONE_VALIDATE: validate_pointers, 0 or 1.
  /// report_cache_failure writes a line to the standard error output. In a program with more rights than its user (set
  /// user ID) the environment is not asked. Throws invalid_argument on any other value.
  static SessionOptions from_environment();
};

/// What a session did so far.
struct SessionCounters {
  std::uint64_t cache_hits = 0;      ///< plans loaded from the cache file
  std::uint64_t tunings = 0;
  std::uint64_t heuristics = 0;
  std::uint64_t nearest = 0;         ///< untuned shapes that are served by the winner of the nearest tuned one
  std::uint64_t compiles = 0;        ///< units handed to a compiler
  std::uint64_t cache_failures = 0;  ///< reads or writes of a cache file that failed and were done without
  std::uint64_t caches_left_out = 0;  ///< cache files that had such a failure
  std::uint64_t cache_rejects = 0;    ///< stored winners that were damaged or did not fit, and so were misses
  std::uint64_t stale_hits = 0;       ///< of cache_hits: measured under another driver; noted for a new tuning
  std::uint64_t waits = 0;            ///< misses that waited for another process to tune them
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

  /// Enqueues the call on `stream`; neither waits nor allocates, and may be captured. `problem` may be
  /// any member of the planned one's class, in either launch context, and be better aligned; for anything else it
  /// throws invalid_argument, which says what differs.
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
/// A failing cache file never fails a call: it is counted, and the session goes on without it. Of several processes
/// that miss the same problem at once, one tunes it; the others wait for its winner, for as long as they would have
/// tuned.
class Session {
 public:
  /// Throws invalid_argument without a device.
  explicit Session(std::shared_ptr<Device> device, SessionOptions options = SessionOptions::from_environment());
  explicit Session(std::nullptr_t, SessionOptions = {}) = delete;
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Enqueues the fastest known kernel for `problem` on `stream`. `buffers` are in the order of the family's
  /// buffers(). On a hit it looks up, launches and returns: no file, no system call of ours, and no lock. Several
  /// threads may call in one stream at once: their calls are executed one after the other, in any order.
  ///
  /// On a miss it may read the cache file, compile and measure (MissPolicy), on streams of its own. While `stream` is
  /// being captured the problem is a graph problem, whatever its launch_context says, and nothing is tuned, allocated
  /// or waited for: the graph's winner serves, else the stream's (Winner::launch_context tells), else the heuristic.
  /// prepare() or tune() the graph problem ahead of the capture.
  ///
  /// The heuristic is the tuned winner of the nearest shape of the same problem (shape_distance()), in memory or in a
  /// cache file, within two octaves, where the family allows it and the model does not advise against it; else the
  /// occupancy model's first choice.
  ///
  /// A stream keeps the workspace of its first call that needs one, 1 MiB, for the session's life (see
  /// recycle_workspaces()); another one for each thread more that calls in it at the same time. A launch that fails
  /// leaves a usable workspace behind. Throws invalid_argument (refused problem, null or misaligned pointer),
  /// not_tuned, compile_failed, device_failed, device_lost, out_of_memory.
  Choice launch(const Problem& problem, std::span<void* const> buffers, Stream stream);

  /// Makes sure that calls of `problem` will hit, without launching. Calls that will be captured are a problem of their
  /// own: set its launch_context to graph. Where the policy does not tune, a stream's winner serves a graph problem.
  Choice prepare(const Problem& problem);

  /// A Plan for `problem`, found or made as launch() would. Allocates; not during capture.
  Plan make_plan(const Problem& problem);

  /// Tunes `problem` now, whatever is known already, stores every trial and dispatches later calls to the winner. Where
  /// the budget allowed for one candidate alone, nothing was compared: it is stored as untuned.
  Tuning tune(const Problem& problem, const TuningOptions& options);

  /// Measures options.only on `problem`, side by side. Nothing is stored, and no call is dispatched otherwise.
  Tuning compare(const Problem& problem, const TuningOptions& options);

  /// Dispatches each problem of `served` to the winner of `tuning` from now on and stores that, with the trials where
  /// the problem is the tuned one: that is where the winner is verified. The others have to differ from it in their
  /// extents alone. Throws invalid_argument, and changes nothing, when there is no winner, or it cannot serve one of
  /// them.
  void adopt(const Tuning& tuning, std::span<const Problem> served);

  /// Gives the workspaces of all streams to whatever streams call next. For programs that go through many streams, such
  /// as a thread's default stream in ever new threads. Every call of this session must have completed, and none may be
  /// made meanwhile. Captured graphs keep theirs. Does not wait.
  void recycle_workspaces();

  const std::shared_ptr<Device>& device() const;
  const SessionOptions& options() const;
  SessionCounters counters() const;

 private:
  friend class Plan;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
