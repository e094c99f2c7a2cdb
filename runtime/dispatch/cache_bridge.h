// CacheBridge: the session's view of the cache file, in the runtime's own words.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/sdk/loans.h>
#include <hone/session.h>
#include <hone/tuning.h>

#include "cache/layers.h"
#include "runtime/dispatch/cache_records.h"

namespace hone {

/// A winner found in a cache file, with its code, unless it has to be compiled.
struct CachedWinner {
  Winner winner;
  std::optional<StoredCode> code;
  bool stale_driver = false;
  bool other_compiler = false;  ///< `code` comes from another compiler than the device's
  bool is_unverified = false;   ///< a shipped one, out of its text
  bool is_attempted = false;  ///< untuned, and another tuning with the session's budget would come to the same end
};

/// One of several processes does it and the others wait for the result: a tuning, or a choice without measuring.
enum class Work { tuning, choice };

/// Reads and writes winners in the session's cache files, and agrees there with other processes on who does what. A
/// failing cache file never fails a call: it is reported, and done without. Thread-safe.
class CacheBridge {
 public:
  /// Files as `options` name them; none: nothing is found and nothing is written.
  CacheBridge(const Device& device, const SessionOptions& options, cache::Layers::Report report);

  /// The stored winner for a problem; nullopt on a miss. A row that does not fit the family's space is a miss, and sets
  /// `is_misfit`.
  std::optional<CachedWinner> find(const Problem& problem, bool* is_misfit = nullptr);

  /// The stored tuned winners of the problems that serve their extents, whatever the alignment and launch context, or
  /// were measured within `extents`; of this device or of similar ones, those of this driver first.
  std::vector<Lender> find_lenders(std::span<const Problem> problems, const std::array<SizeRange, 3>& extents,
                                   cache::Devices devices);

  /// The limits of the device in this machine; nullopt where no file has them.
  std::optional<DeviceLimits> find_limits();
  /// Stores limits that were measured now, and returns the least of these and of what earlier processes measured.
  DeviceLimits publish(const DeviceLimits& measured);

  /// The stored tuning behind the winner that serves `problem`; nullopt where no file has one.
  std::optional<Tuning> find_tuning(const Problem& problem);

  /// A winner with its binary and, for a tuned one, its trials, as they are stored.
  cache::Publication publication(const Problem& problem, const Winner& winner, const Binary& binary,
                                 const Tuning* tuning) const;
  /// Stores all or none.
  void publish(std::span<const cache::Publication> publications);
  void publish(const Problem& problem, const Winner& winner, const Binary& binary, const Tuning* tuning);

  /// Notes that a tuning would help `problem`: no tuned winner serves it, or `stale`, one of another driver.
  void note_miss(const Problem& problem, const std::array<SizeRange, 3>& sizes, bool is_stale);

  /// True if missed problems can be noted: there is a cache file that may be written to, and nothing is wrong with it.
  bool can_note() { return layers_.can_write(); }

  /// Takes the work on the class of `problem` for this bridge; `even_if_served`: a stored winner does not do.
  /// nullopt: there is no file to agree in.
  std::optional<cache::ClaimState> claim(Work work, const Problem& problem, bool even_if_served,
                                         std::chrono::milliseconds patience);
  bool is_claimed(Work work, const Problem& problem);
  void renew(Work work, const Problem& problem);
  void release(Work work, const Problem& problem);

  /// Winners found that were damaged or did not fit the family's space.
  std::uint64_t rejects() const { return layers_.damaged() + misfits_; }
  std::uint64_t left_out() const { return layers_.left_out(); }

 private:
  void reject(const Problem& measured, const cache::WinnerRecord& winner, std::string_view misfit);
  const std::string& digest_of(const KernelFamily& family) const;
  cache::ToolchainRecord toolchain(const Problem& problem) const;
  std::string source_digest(const Problem& problem) const;
  cache::KeyRecord key_of(const Problem& problem, const std::array<SizeRange, 3>& sizes) const;
  cache::KeyRecord claim_key(Work work, const Problem& problem) const;
  cache::Query query_of(const Problem& problem) const;

  const Device& device_;
  const bool load_binaries_;
  const std::chrono::milliseconds budget_;
  const std::string_view objective_;
  const bool has_files_;
  const std::string owner_;
  cache::DeviceRecord device_record_;
  std::string compiler_;
  const cache::Layers::Report report_;
  cache::Layers layers_;
  std::atomic<std::uint64_t> misfits_ = 0;
  mutable std::mutex mutex_;
  std::set<std::string> rejected_;  ///< winners, as they were reported
  mutable std::unordered_map<const KernelFamily*, std::string> digests_;
};

}  // namespace hone
