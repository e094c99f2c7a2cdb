// The rows of the cache as plain data. Everything is text and numbers: the cache knows no CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hone::cache {

/// The device that winners were measured on.
struct DeviceRecord {
  std::string kind;          ///< "cuda" or "host"
  std::string name;          ///< for people
  std::string architecture;  ///< of the binaries: "sm_90"
  std::string identity;      ///< every fact that decides which kernel is fastest, as canonical text; the key
  int sm_count = 0;
  int max_threads_per_sm = 0;
  double peak_bandwidth_gbps = 0;  ///< 0: unknown

  bool operator==(const DeviceRecord&) const = default;
};

/// The toolchain produced a binary and ran it.
struct ToolchainRecord {
  std::string compiler;       ///< identity of the compiler; part of the key
  std::string driver;         ///< a different driver makes a row stale, not unusable
  std::string family_digest;  ///< of template sources, parameter space and family version; part of the key

  bool operator==(const ToolchainRecord&) const = default;
};

/// First and last value of an extent, both served.
struct RangeRecord {
  std::int64_t first = 1;
  std::int64_t last = 1;

  bool operator==(const RangeRecord&) const = default;
};

/// True if each extent lies in its range.
inline bool is_within(const std::array<std::int64_t, 3>& extents, const std::array<RangeRecord, 3>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (extents[i] < sizes[i].first || extents[i] > sizes[i].last) return false;
  return true;
}

/// A class of problems that share one winner.
struct ProblemRecord {
  std::string family;
  std::string operation;
  std::string dtype;
  std::string numerics;        ///< "fast", "reproducible", "fast, NaN ignored"
  std::string launch_context;  ///< "stream", "graph"
  int alignment = 0;           ///< bytes
  std::array<RangeRecord, 3> sizes;
  std::string objective = "time";  ///< what the winner was chosen by: "time", "energy"

  bool operator==(const ProblemRecord&) const = default;
};

/// The whole key of a winner. Lookups compare every column, never a hash alone.
struct KeyRecord {
  DeviceRecord device;
  ToolchainRecord toolchain;
  ProblemRecord problem;
};

/// A candidate and what its compiled code needs.
struct CandidateRecord {
  std::string policy;  ///< "block_threads=256 vector_bytes=16 …"
  std::int64_t max_blocks = 0;
  int block_threads = 0;
  int registers = 0;
  int static_smem_bytes = 0;
  int local_bytes = 0;
  int max_threads_per_block = 0;
  int resident_blocks = 0;  ///< per SM

  bool operator==(const CandidateRecord&) const = default;
};

struct WinnerRecord {
  CandidateRecord candidate;
  bool tuned = false;  ///< false: chosen by the occupancy model, never measured
  std::array<std::int64_t, 3> tuned_extents{1, 1, 1};
  std::int64_t bytes_moved = 0;  ///< at tuned_extents
  double median_us = 0;
  double spread_us = 0;
  std::string lender = {};  ///< of an untuned one: the kind of loan, ": ", and the class whose winner it is; of a
                            ///< tuned one that was shipped (shipped_winners.h): "shipped: " and its origin; else ""

  bool operator==(const WinnerRecord&) const = default;
};

/// One measured or rejected candidate of a tuning.
struct TrialRecord {
  CandidateRecord candidate;
  std::int64_t bytes_in_flight_per_sm = 0;
  double predicted_us = 0;
  double median_us = 0;
  double spread_us = 0;
  int samples = 0;
  bool is_default = false;
  std::string verdict;  ///< "ok", "wrong", "rejected", "failed"
  std::string reason;
  double energy_uj = 0;  ///< of one call; 0: not measured
  double energy_spread_uj = 0;
  int sequence = 0;  ///< 1 for the first one that was measured; 0: not measured, or not recorded

  bool operator==(const TrialRecord&) const = default;
};

/// One run of the tuner on one problem.
struct TuningRecord {
  std::int64_t started_at = 0;  ///< seconds since 1970, UTC
  double compile_ms = 0;
  double measure_ms = 0;
  bool budget_spent = false;
  std::vector<TrialRecord> trials;  ///< best first
  double power_limit_w = 0;         ///< that the device enforced when energy was measured; 0: energy was not measured

  bool operator==(const TuningRecord&) const = default;
};

/// The tuning of a winner as a file has it.
struct FoundTuning {
  std::optional<TuningRecord> tuning;  ///< none: the winner is untuned or unknown, or is_damaged
  bool is_damaged = false;             ///< there is one, but the digest does not hold
};

/// Compiled code.
struct BinaryRecord {
  std::string format;  ///< "cubin" or "elf"
  std::string architecture;
  std::vector<std::byte> code;
  std::string entries = {};  ///< symbols of the kernels, one a line, in the unit's order; "": its own names of them

  bool operator==(const BinaryRecord&) const = default;
};

/// One tuning writes this: all of it in one transaction, or nothing.
struct Publication {
  KeyRecord key;
  WinnerRecord winner;
  BinaryRecord binary;
  std::optional<TuningRecord> tuning;  ///< none for a choice without measuring
};

/// A tuning whose time was over before it had compared anything: what it chose is untuned.
struct Attempt {
  std::int64_t started_at = 0;  ///< seconds since 1970, UTC
  double ms = 0;                ///< how long it took

  /// True if another one with `budget_ms` would come to the same end: it has little more time, and the machine was as
  /// busy within the last hour.
  bool rules_out(double budget_ms, std::int64_t seconds_since_1970) const {
    constexpr double kMuchMore = 4;
    constexpr std::int64_t kSecondsValid = 60 * 60;
    return budget_ms <= kMuchMore * ms && started_at <= seconds_since_1970 &&
           seconds_since_1970 - started_at < kSecondsValid;
  }
};

/// CodeUse says if a lookup may return code to run.
enum class CodeUse {
  required,  ///< winners whose code is gone or damaged are passed over
  optional,  ///< such a winner is good too, without its code: the caller can compile
  never,     ///< no code is read, so the file may be anybody's
};

/// The devices whose winners a lookup may return.
enum class Devices {
  same,     ///< those for which same_device() holds
  similar,  ///< all others of the kind
};

/// A lookup asks for one problem, by its extents.
struct Query {
  DeviceRecord device;        ///< compared by same_device()
  ToolchainRecord toolchain;  ///< of `compiler`, only the options are compared (same_options())
  std::string family;
  std::string operation;
  std::string dtype;
  std::string numerics;
  std::string launch_context;
  int alignment = 0;
  std::array<std::int64_t, 3> extents{1, 1, 1};
  CodeUse code = CodeUse::required;
  std::string objective = "time";
  Devices devices = Devices::same;
};

/// A tuned winner for the key of a Query but for launch context, alignment and extents, without its code: what a
/// search may begin with, and what may be lent.
struct NearWinner {
  std::size_t query = 0;  ///< index of the Query
  WinnerRecord winner;
  DeviceRecord device;
  ProblemRecord problem;
  bool stale_driver = false;
  bool other_source = false;  ///< a shipped one, tuned with other sources of the family
};

/// The answer to a Query, verified: digests of row and binary held.
struct Hit {
  WinnerRecord winner;
  std::array<RangeRecord, 3> sizes;
  std::optional<BinaryRecord> binary;  ///< none only as Query::code allows
  bool stale_driver = false;           ///< measured under another driver version
  bool other_compiler = false;         ///< its code is that of another compiler than the query's
  std::int64_t winner_id = 0;
  std::int64_t used_at = 0;  ///< seconds since 1970, UTC: when it was last loaded; 0: never, as far as is known
  std::optional<Attempt> attempt = {};  ///< of an untuned one: the tuning that left it
};

/// A claim is needless where there is a tuned winner for the query, or an untuned one that will do.
struct Need {
  Query query;
  double budget_ms = 0;  ///< of the tuning that is meant; an untuned one will do whose Attempt rules that out
};

/// ClaimState says what is known of the tuning of a problem class.
enum class ClaimState {
  taken,   ///< the caller is to tune it, until its lease is over
  held,    ///< somebody else is tuning it
  served,  ///< a winner that will do is there by now
  locked,  ///< nothing: others kept the file locked
};

/// MissRecord::reason: no tuned winner serves the problem.
inline constexpr char kUntuned[] = "untuned";
/// MissRecord::reason: the tuned winner was measured under another driver.
inline constexpr char kOtherDriver[] = "driver";

/// A problem that a tuning would help.
struct MissRecord {
  KeyRecord key;
  std::string reason;
  std::array<std::int64_t, 3> extents{1, 1, 1};  ///< what was asked
  std::int64_t bytes_moved = 0;                  ///< at these extents
};

/// A MissRecord as it stands in a file.
struct StoredMiss {
  MissRecord miss;
  std::int64_t weight = 0;     ///< how often sessions met the class
  std::int64_t missed_at = 0;  ///< seconds since 1970, UTC: the last time
};

/// The least times of calls on a device in a machine, as a process of it has measured. The first three are the key.
struct LimitsRecord {
  std::string device;   ///< kind, architecture and identity of the DeviceRecord
  std::string machine;  ///< what decides how fast the host enqueues: its CPU
  std::string driver;
  double enqueue_us = 0;  ///< 0: not measured, as of the others
  double stream_launch_us = 0;
  double graph_launch_us = 0;
  double read_gbps = 0;
  std::int64_t measured_at = 0;  ///< seconds since 1970, UTC: the last time

  bool operator==(const LimitsRecord&) const = default;
};

/// A session tells this about the cache it uses.
struct Notes {
  std::vector<MissRecord> misses;
  std::map<std::int64_t, std::int64_t> loads;  ///< by id of the winner: how often it was loaded

  bool empty() const { return misses.empty() && loads.empty(); }
};

/// A winner as inspection shows it.
struct StoredWinner {
  std::int64_t id = 0;
  KeyRecord key;
  WinnerRecord winner;
  std::int64_t created_at = 0;  ///< seconds since 1970, UTC
  std::string binary_digest;      ///< winners with the same code share it
  std::int64_t binary_bytes = 0;  ///< 0: the code was evicted
};

}  // namespace hone::cache
