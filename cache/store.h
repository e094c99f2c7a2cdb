// Store: the cache file. Every operation opens it, does its work in one short transaction and closes it again.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"

namespace hone::cache {

enum class StoreFault {
  unopenable,      ///< a directory, no permission, no such folder and it cannot be made
  not_a_database,  ///< a file of another kind
  foreign,         ///< an SQLite database that is not Hone's, or whose schema was changed
  newer,           ///< written by a newer Hone
  read_only,       ///< a write was asked for
  busy,            ///< another process kept it locked past the time-out
  corrupt,         ///< SQLite or a digest found damage
  full,            ///< no space is left
  untrusted,       ///< somebody else may have written the file, or may write to its folders
  unlocked,        ///< other machines do not see locks on it, and might write at the same time
  failed,          ///< anything else SQLite reports
};

/// Thrown when the file cannot serve. The message names the path, what was found and what to do. It does not say where
/// the file was named, which its reader knows.
class StoreError : public std::runtime_error {
 public:
  StoreError(StoreFault fault, std::filesystem::path path, std::string detail, const std::string& message)
      : std::runtime_error(message), fault_(fault), path_(std::move(path)), detail_(std::move(detail)) {}
  StoreFault fault() const noexcept { return fault_; }
  const std::filesystem::path& path() const noexcept { return path_; }
  const std::string& detail() const noexcept { return detail_; }  ///< what was found, without the fault's own words

 private:
  StoreFault fault_;
  std::filesystem::path path_;
  std::string detail_;
};

/// A cache file may grow to so many bytes where nothing else is said: some thousands of winners with code and trials.
inline constexpr std::int64_t kDefaultMaxBytes = std::int64_t{256} << 20;

/// The least limit that a user may set: an empty file takes 80 KiB, and a winner with code and trials 10 to 60 KiB.
/// With less room, each winner that is stored would evict the one before it.
inline constexpr std::int64_t kLeastMaxBytes = std::int64_t{1} << 20;

/// Why a cache file cannot be kept to so many bytes, for messages, with what can be; "" if it can. `has_none`: 0 is no
/// limit.
std::string max_bytes_fault(std::int64_t max_bytes, bool has_none = true);

/// The cache file at one path. Holds no connection and no lock between calls, so it is safe to use from any thread,
/// across fork, and from many processes at once. A file that does not exist is an empty cache; the first
/// publication creates it with its folder. Every method throws StoreError; then nothing was written.
class Store {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// The file may grow to `max_bytes` (0: to any size), unless it has a limit of its own (kMaxBytesProperty).
  explicit Store(std::filesystem::path path, std::int64_t max_bytes = kDefaultMaxBytes)
      : path_(std::move(path)), max_bytes_(max_bytes) {}

  const std::filesystem::path& path() const { return path_; }

  /// The winner that serves the query, with its binary; a tuned one before an untuned one, the same driver before
  /// another, one with its code before one without, the newest before older ones. Rows whose digest does not hold are
  /// skipped: a miss, never a wrong winner; their number is added to `*damaged`. Waits 40 ms at most for a lock.
  std::optional<Hit> find(const Query& query, std::uint64_t* damaged = nullptr) const;

  /// The tuned winners that have the key of one of the queries but for launch context, alignment and extents, and serve
  /// its extents or were measured within `extents`; in no order. Rows whose digest does not hold are left out, and
  /// locks are waited for as in find(). Reads no code.
  std::vector<NearWinner> find_near(std::span<const Query> queries, const std::array<RangeRecord, 3>& extents) const;
  std::vector<NearWinner> find_near(const Query& query, const std::array<RangeRecord, 3>& extents) const {
    return find_near(std::span(&query, 1), extents);
  }

  /// Writes winners, binaries and trials in one transaction; a winner with the same key is replaced, unless it is tuned
  /// and the new one is not, or comes from an Attempt and the new one from no tuning. What comes from a tuning ends the
  /// claim on its class. A file that is too large then evicts others, see keep_to_size(). Waits for other writers
  /// during `patience`, by default kWritePatience.
  void publish(std::span<const Publication> publications, Milliseconds patience) const;
  void publish(std::span<const Publication> publications) const;
  void publish(const Publication& publication) const { publish(std::span(&publication, 1)); }

  /// Takes the tuning of the class of `key` for `owner` (see new_owner), unless another living owner has it or a winner
  /// fulfils `need` by now; nullptr: whatever is there does not do. Another takes over when the lease is past, or
  /// before when the owner's process is known to have ended. Waits for other writers during `patience`, and then
  /// throws.
  ClaimState claim(const KeyRecord& key, const Need* need, const std::string& owner, Milliseconds lease,
                   Milliseconds patience) const;
  /// False when the claim has passed to somebody else, or the class was published.
  bool renew(const KeyRecord& key, const std::string& owner, Milliseconds lease) const;
  void release(const KeyRecord& key, const std::string& owner) const;
  /// True if a living owner is tuning the class. Only reads.
  bool is_claimed(const KeyRecord& key) const;

  /// Counts loads of winners, and misses.
  void note(const Notes& notes, Milliseconds patience) const;

  /// Returns what was measured of the device in the machine that `key` names; nullopt if nothing was, or too long ago.
  /// The file may be anybody's.
  std::optional<LimitsRecord> limits(const LimitsRecord& key) const;
  /// Stores what was measured, merged with what is there (cache/limits.h), and returns that. Waits for other writers
  /// during a tenth of a second.
  LimitsRecord publish(const LimitsRecord& limits) const;

  /// The lists below are for commands: they wait for writers as long as publications do, and the file may be anybody's.

  /// The classes that sessions missed, the heaviest first: by how often, then by bytes moved.
  std::vector<StoredMiss> misses() const;

  /// All winners, ordered by device, family, operation, dtype, alignment and size. Rows whose digest does not hold are
  /// left out; their number is added to `*damaged`.
  std::vector<StoredWinner> winners(std::uint64_t* damaged = nullptr) const;
  /// Returns the winners of one operation of a family, found by an index.
  std::vector<StoredWinner> winners(std::string_view family, std::string_view operation,
                                    std::uint64_t* damaged = nullptr) const;

  /// The tuning that produced a winner, with its trials; nullopt for an untuned winner or an unknown id.
  std::optional<TuningRecord> tuning(std::int64_t winner_id) const;
  /// The same of several winners, in their order, from one state of the file. A damaged one is no error here. Reading
  /// keeps writers waiting, so ask for a few at a time.
  std::vector<FoundTuning> tunings(std::span<const std::int64_t> winner_ids) const;

 private:
  std::filesystem::path path_;
  std::int64_t max_bytes_;
};

}  // namespace hone::cache
