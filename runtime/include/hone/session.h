// Session: the runtime of one device, with its loaded plans and its view of the cache.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

namespace hone {

class KernelExtents;
class KernelValue;
class TunableKernel;

/// The policy for a miss: a call for whose problem neither memory nor a cache file has a tuned winner.
enum class MissPolicy : std::uint8_t {
  /// Tune now, within SessionOptions::tune_budget, and store the winner. If another process is tuning the problem, wait
  /// for its winner for at most two budgets, then do as `heuristic` and look again later. Candidates run in this
  /// process, unprotected: one that hangs or crashes takes the program along. `hone tune` runs them in processes of
  /// their own.
  tune,
  /// Take the winner of the nearest tuned class, or compile the model's first choice. It is stored as untuned, and the
  /// problem is noted for `hone tune --missed`.
  heuristic,
  error,      ///< throw Error(not_tuned), also where a cache file has an untuned winner
};

struct SessionOptions {
  /// The policy for a miss. Change it to `tune` if the program is to tune itself, and may wait for seconds.
  MissPolicy on_miss = MissPolicy::heuristic;

  /// The time to spend on tuning one problem.
  std::chrono::milliseconds tune_budget{2000};

  /// Winners are chosen by this. Winners of one objective never serve a session of the other. Change it if calls come
  /// so densely that their energy matters more than their time.
  Objective objective = Objective::time;

  /// The cache file. Empty: no file, and winners live only as long as the session.
  std::filesystem::path cache_path;

  /// The size in bytes above which storing a winner evicts: first trials, then code, then winners, each the longest
  /// unused first. 0: no limit; else 1 MiB at least. A limit that is stored in the file (`hone cache prune --limit`)
  /// takes precedence.
  std::int64_t cache_max_bytes = std::int64_t{256} << 20;

  /// Only read the cache file: write neither winners nor missed problems, and claim no tuning.
  bool cache_read_only = false;

  /// Read-only cache files, such as an image or a package ships, that are asked in this order after `cache_path`.
  std::vector<std::filesystem::path> system_caches = {};

  /// Text files of winners that Hone ships (`share/hone/*.winners`), asked after all caches. They have no code: a
  /// winner of this device and these kernel sources is compiled, verified on small problems, stored in `cache_path`,
  /// and counts as tuned; others are lent. A file that is not there has none.
  std::vector<std::filesystem::path> shipped_winners = {};

  /// Run the code in cache files. When off, the winners that they name are compiled from Hone's own templates, about 50
  /// ms each, and the files need not be trusted. Turn it off to read a cache that others may write to.
  bool load_binaries = true;

  /// Called once for each cache file that cannot be used, for a shipped winner that is not used, for a stored one whose
  /// policy the family does not have, and for a stats_folder that cannot be written to, with its path or problem and the
  /// reason, by the thread that found out. Must not call the session.
  std::function<void(std::string_view)> report_cache_failure = {};

  /// Called at the session's first call that the heuristic serves under MissPolicy::heuristic, with the problem and how
  /// to tune it, by the thread that missed. Must not call the session.
  std::function<void(std::string_view)> report_untuned = {};

  /// Called at the first winner of the session whose blocks cannot all be resident at once, though it needs them to be
  /// (Launch::cooperative), with the problem and the reason, by the thread that found out: another policy serves the
  /// problem, as long as the session lives. Must not call the session.
  std::function<void(std::string_view)> report_refused_grid = {};

  /// Ask the driver on every call whether pointers are memory of the session's device, which takes about a microsecond
  /// a pointer, and check the contents of index arrays such as the offsets of segments, which waits for the stream and
  /// copies them to the host. Managed memory counts as the device's, memory of another GPU does not, even if peer
  /// access is enabled: nothing is tuned for reading over the link. For tests and for debugging. While a stream is
  /// being captured, contents cannot be checked.
  bool validate_pointers = false;

  /// The number of workspaces (1 MiB each) that are allocated ahead for stream capture, where nothing may be allocated.
  /// Each captured graph takes one for each of its streams, for the session's life.
  int capture_workspaces = 16;

  /// A folder in which each session keeps a small JSON file with its counters, `hone-<process>-<n>.json`, for `hone
  /// stats`. It is written after misses, never by a hit, and removed with the session. A folder that is not there is
  /// reported, and not made. Empty: no file.
  std::filesystem::path stats_folder = {};

  /// The options that the environment asks for:
  /// - HONE_CACHE: the cache file, as `<path>`, `rw:<path>` or `ro:<path>` (cache_read_only); `rw` and `ro` alone mean
  ///   the usual place, by the XDG rules: $XDG_CACHE_HOME/hone/cache.sqlite, else ~/.cache/hone/cache.sqlite. `off`
  ///   means no file at all, system_caches and shipped_winners included.
  /// - HONE_CACHE_PATH: system_caches and shipped_winners, separated by `:`; a folder stands for its file cache.sqlite
  ///   and its files *.winners, any other file for a cache. `off`: none of them. The default is the folder share/hone
  ///   beside the library, then /usr/local/share/hone:/usr/share/hone.
  /// - HONE_CACHE_MAX_BYTES: cache_max_bytes, a number that may end in Ki, Mi or Gi.
  /// - HONE_BINARIES: load_binaries, `on` or `off`.
  /// - HONE_ON_MISS: on_miss, `heuristic`, `tune` or `error`.
  /// - HONE_OBJECTIVE: objective, `time` or `energy`.
  /// - HONE_VALIDATE: validate_pointers, 0 or 1.
  /// - HONE_STATS: stats_folder.
  /// report_cache_failure and report_refused_grid write a line to standard error; so does report_untuned, once in the
  /// process, unless HONE_ON_MISS is set. A program with more rights than its user (set user ID) ignores the
  /// environment. Throws Error(invalid_argument) for any other value.
  static SessionOptions from_environment();
};

/// Counts of what a session has done so far.
struct SessionCounters {
  std::uint64_t cache_hits = 0;      ///< plans loaded from the cache file
  std::uint64_t tunings = 0;
  std::uint64_t heuristics = 0;
  std::uint64_t nearest = 0;         ///< untuned classes that the winner of the nearest tuned class serves (Loan)
  std::uint64_t shipped = 0;         ///< plans of shipped winners that were compiled and verified by this session
  std::uint64_t compiles = 0;        ///< units handed to a compiler
  std::uint64_t cache_failures = 0;  ///< reads and writes of cache files that failed, which failed no call
  std::uint64_t caches_left_out = 0;  ///< cache files that had such a failure
  std::uint64_t cache_rejects = 0;    ///< stored winners that were damaged or did not fit, and counted as misses
  std::uint64_t refused_grids = 0;    ///< winners that other policies serve for: their blocks cannot all be resident
  std::uint64_t stale_hits = 0;       ///< cache_hits measured under another driver, and noted for a new tuning
  std::uint64_t waits = 0;            ///< misses that waited for another process to tune them
  std::uint64_t not_stored = 0;       ///< cache_failures that lost a winner, which lives as long as the session
  std::string last_cache_failure;
};

/// A loaded winner with a workspace of its own. A launch of it needs no lookup, and a graph that captured one stays
/// valid as long as the Plan lives. The caller must order the launches of one Plan, by one stream or by events.
/// Move-only. Keeps the device alive, but must not outlive its Session.
class Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  /// Enqueues the call on `stream`. Neither waits nor allocates, and may be captured. `problem` may be any member of
  /// the planned class, also in the other launch context or better aligned. For any other problem it throws
  /// Error(invalid_argument), which says what differs.
  void launch(const Problem& problem, std::span<void* const> buffers, Stream stream) const;

  /// The winner that the plan launches. It lives as long as the Session.
  const Winner& winner() const;

 private:
  friend class Session;
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Communicator;

/// The runtime of one device. Thread-safe: any number of threads may call with any streams at once. Make one for each
/// device and keep it; destroy it only when no launch is pending.
///
/// A cache file that fails never fails a call: it is counted, and the session goes on without it. If several processes
/// miss the same problem at once, one tunes it, and the others wait for its winner, for at most two budgets. Misses of
/// one session are handled one after the other; hits do not wait for them.
class Session {
 public:
  /// Throws invalid_argument without a device, and where cache_max_bytes is neither 0 nor 1 MiB at least.
  explicit Session(std::shared_ptr<Device> device, SessionOptions options = SessionOptions::from_environment());
  explicit Session(std::nullptr_t, SessionOptions = {}) = delete;
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Enqueues the fastest known kernel for `problem` on `stream`. `buffers` are in the order of
  /// KernelFamily::buffers(). A hit looks up, launches and returns: it reads no file, takes no lock, and makes no
  /// system call of its own. Several threads may call in one stream at once; their calls are executed one after the
  /// other, in any order.
  ///
  /// A miss may read the cache file, compile and measure (MissPolicy), on streams of its own. While `stream` is being
  /// captured, the problem is a graph problem, whatever its launch_context says, and nothing is tuned, no device memory
  /// is allocated and no stream waited for: the winner for graphs serves it, else the winner for streams (see
  /// Winner::launch_context), else the heuristic. Call prepare() or tune() with the graph problem before the capture: a
  /// miss also waits until another thread's miss is served, which may be tuning.
  ///
  /// The heuristic is the tuned winner of another class, from memory or a cache file, if its policy is valid here: that
  /// of another alignment, of the other launch context, of the largest tuned size, of an operation with as much work,
  /// of the nearest shape, or of a similar device, in this order (hone/sdk/loans.h). Otherwise it is the occupancy
  /// model's first choice.
  ///
  /// A winner may need all its blocks resident at once (Launch::cooperative). Where the device has no room for them, as
  /// under MPS or in a stream of a green context, the next best policy serves this call and all later ones of the class
  /// (SessionOptions::report_refused_grid), and no other class gets such a winner; a pinned session throws
  /// device_failed.
  ///
  /// Each stream keeps the workspace (1 MiB) of its first call that needs one for the session's life, and one more for
  /// each further thread that calls in it at the same time; see recycle_workspaces(). A launch that fails leaves its
  /// workspace usable. Throws Error: invalid_argument (refused problem, null or misaligned pointer), not_tuned,
  /// compile_failed, device_failed, device_lost, out_of_memory.
  Choice launch(const Problem& problem, std::span<void* const> buffers, Stream stream);

  /// For a kernel of one's own (hone/tunable_kernel.h): session.launch(axpy, {2.5f, x, y}, n, stream). `values` are its
  /// arguments in order, but for extents. If an extent is 0, nothing is launched, and the Choice has no winner. Throws
  /// invalid_argument, too, for values that do not fit, and for a written array that overlaps another in a part.
  Choice launch(const TunableKernel& kernel, std::initializer_list<KernelValue> values, const KernelExtents& extents,
                Stream stream);
  Choice launch(const TunableKernel& kernel, std::span<const KernelValue> values, const KernelExtents& extents,
                Stream stream);

  /// Makes sure that calls of `problem` will hit, without launching. Calls that will be captured are another problem:
  /// set launch_context to graph. Unless the policy tunes, the winner for streams may serve a graph problem. Throws
  /// what launch() throws.
  Choice prepare(const Problem& problem);

  /// Makes a Plan for `problem`, whose winner is found as launch() finds it. Allocates; must not be called during
  /// capture.
  Plan make_plan(const Problem& problem);

  /// Tunes `problem` now, even if it has a winner, stores every trial, and dispatches later calls to the new winner. If
  /// the budget allowed for one candidate only, nothing was compared, and the winner is stored as untuned. Throws what
  /// hone::tune() throws. A cache file that fails is counted; the winner then lives as long as the session.
  Tuning tune(const Problem& problem, const TuningOptions& options);

  /// The tuning behind the winner that a cache file has for `problem`, with every trial; its `problem` has the
  /// extents that were measured. nullopt where no winner is stored or its trials are gone. Code, roofline and rank
  /// correlation are not stored. Reads the files; launches and compiles nothing.
  std::optional<Tuning> stored_tuning(const Problem& problem) const;

  /// The limits of the device in this machine that a cache file has; all zero where none has. The first tune() of a
  /// session measures them and stores the least of all measurements of the last 30 days; other tunings take what is
  /// stored, and measure where nothing is.
  DeviceLimits stored_limits() const;

  /// Measures the candidates options.only on `problem`, side by side. Stores nothing and changes no dispatch. Throws
  /// Error(invalid_argument) if options.only is empty.
  Tuning compare(const Problem& problem, const TuningOptions& options);

  /// Dispatches each problem of `served` to the winner of `tuning` from now on, and stores that. The problems may
  /// differ from the tuned one in their extents only; the trials are stored with the tuned one, where the winner is
  /// verified, for about a quarter of the time that the tuning took. Throws Error(invalid_argument), and changes
  /// nothing, if there is no winner or it cannot serve one of the problems.
  void adopt(const Tuning& tuning, std::span<const Problem> served);

  /// Keeps from now on the winner that each problem class has, for this session's life: a call has the same bits
  /// whenever it is made. A class without one gets it at its first call, as MissPolicy::heuristic or error says, and
  /// keeps it: nothing is tuned, and no other process's winner replaces it. tune() and adopt() throw invalid_argument.
  /// Waits for a tuning that another thread has begun. To give several processes, or runs, the same winners, let them
  /// read a snapshot of a cache (docs/numerics.md).
  void pin();
  bool is_pinned() const;

  /// Lets the streams that call next take over the workspaces of all earlier streams. For programs that go through many
  /// streams, such as the default streams of short-lived threads. All calls of this session must have completed, and
  /// none may be made meanwhile. Captured graphs keep their workspaces. Does not wait.
  void recycle_workspaces();

  const std::shared_ptr<Device>& device() const;
  const SessionOptions& options() const;

  /// Names the winners that calls are dispatched to now, as 32 hexadecimal digits. Sessions with equal fingerprints
  /// launch the same candidates for the same problem classes. Waits while a miss is served.
  std::string fingerprint() const;

  /// Dispatches to the winners of rank `from`, as far as both ranks have a plan for a problem class: ranks that tuned
  /// apart may have others, with other times and other roundings. All ranks call this together, after their first calls
  /// or prepare(). Nothing is measured or stored. Returns the number of winners that changed on this rank. Throws Error
  /// on all ranks: invalid_argument if a rank cannot launch one, such as another GPU; device_failed as
  /// Communicator::exchange().
  int agree(Communicator& communicator, int from = 0);

  /// A snapshot of the counters.
  SessionCounters counters() const;

 private:
  friend class Plan;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
