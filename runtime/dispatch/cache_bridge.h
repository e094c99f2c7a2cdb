// CacheBridge: the session's view of the cache file, in the runtime's own words.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

#include "cache/store.h"

namespace hone {

/// A winner found in the cache file, with its code.
struct CachedWinner {
  Winner winner;
  Binary binary;
};

/// Translates problems and winners to records of the cache and back. Thread-safe. A failing cache file is a value here:
/// both operations report it through their `failure` argument and go on.
class CacheBridge {
 public:
  /// An empty path: no file; nothing is found and nothing is written.
  CacheBridge(const Device& device, std::filesystem::path path);

  /// The stored winner for a problem; nullopt on a miss. A row that does not fit the family's space is a miss.
  std::optional<CachedWinner> find(const Problem& problem, std::string& failure) const;

  /// Stores a winner with its binary and, for a tuned one, its trials.
  void publish(const Problem& problem, const Winner& winner, const Binary& binary, const Tuning* tuning,
               std::string& failure) const;

 private:
  const std::string& digest_of(const KernelFamily& family) const;
  cache::ToolchainRecord toolchain(const KernelFamily& family) const;
  cache::CandidateRecord to_record(const Problem& problem, const Trial& trial) const;
  cache::TuningRecord to_record(const Tuning& tuning) const;

  const Device& device_;
  std::optional<cache::Store> store_;
  cache::DeviceRecord device_record_;
  std::string compiler_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<const KernelFamily*, std::string> digests_;
};

}  // namespace hone
