// BinaryMemo: the binaries that a process has already compiled.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <hone/device.h>
#include <hone/kernel.h>

#include "runtime/jit/compile_pool.h"

namespace hone {

/// Compiles units and remembers the binaries, so that problems which differ in size alone compile once. One memo
/// belongs to one device. Thread-safe; what one thread is compiling, others wait for.
class BinaryMemo {
 public:
  /// As compile_all(); units that are remembered come back at once.
  std::vector<CompileOutcome> compile(const Device& device, std::span<const Unit> units, std::stop_token stop = {},
                                      const CompileProgress& on_progress = {},
                                      std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt,
                                      std::size_t spare_cores = 0);

  /// Units handed to a compiler so far.
  std::uint64_t compiled() const;

 private:
  std::shared_ptr<const Binary> known(const std::string& key) const;
  std::shared_ptr<const Binary> compile_once(const Device& device, const Unit& unit, const std::string& key);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::shared_ptr<const Binary>> binaries_;  ///< by everything that is compiled
  std::unordered_set<std::string> under_way_;
  std::uint64_t compiled_ = 0;
};

}  // namespace hone
