// BinaryMemo: the binaries that a process has already compiled, and the modules that it has loaded.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <hone/device.h>
#include <hone/kernel.h>

#include "runtime/jit/compile_pool.h"

namespace hone {

/// Digest of everything that is compiled: the source and what it may include.
std::string unit_digest(const Unit& unit);

/// Compiles units and remembers the binaries, so that problems which differ in size alone compile once. One memo
/// belongs to one device. Thread-safe; what one thread is compiling, others wait for.
class BinaryMemo {
 public:
  /// Units that are compiled while something else is done. Whoever lets go of them has no more use for them: no further
  /// one is begun, and nobody waits for those under way.
  class Ahead {
   public:
    Ahead() : stop_(std::nostopstate) {}
    explicit Ahead(std::stop_source stop) : stop_(std::move(stop)) {}
    ~Ahead() { stop_.request_stop(); }
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;
    Ahead(Ahead&& other) noexcept : stop_(std::exchange(other.stop_, std::stop_source(std::nostopstate))) {}
    Ahead& operator=(Ahead&& other) noexcept {
      std::swap(stop_, other.stop_);
      return *this;
    }

   private:
    std::stop_source stop_;
  };

  /// As compile_all(); units that are remembered come back at once.
  std::vector<CompileOutcome> compile(const Device& device, std::span<const Unit> units, std::stop_token stop = {},
                                      const CompileProgress& on_progress = {},
                                      std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

  /// Compiles what `list_units` says, in threads of its own, which leave some cores to others and begin nothing while
  /// calls of compile() have work for all of theirs. compile() finds the binaries; failures are forgotten. `device`
  /// must outlive the memo, which in the end waits for what is under way.
  [[nodiscard]] Ahead compile_ahead(const Device& device, std::function<std::vector<Unit>()> list_units,
                                    std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

  /// Waits for what is compiled ahead: all of it where it is held still, else what is under way.
  void finish_ahead();

  /// Loads code on the device that the memo belongs to. Code that is loaded and in use comes back at once: the problems
  /// whose winners share code share a module, which lives as long as one of them uses it. Throws as Device::load().
  std::shared_ptr<const Module> load(Device& device, const Binary& binary, const std::vector<std::string>& entries);

  /// Units handed to a compiler so far.
  std::uint64_t compiled() const;

 private:
  class Counted;

  std::shared_ptr<const Binary> known(const std::string& key) const;
  std::shared_ptr<const Binary> compile_once(const Device& device, const Unit& unit, const std::string& key);
  std::shared_ptr<const Binary> compile_once_ahead(const Device& device, const Unit& unit, const std::stop_token& stop);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::unordered_map<std::string, std::shared_ptr<const Binary>> binaries_;  ///< by everything that is compiled
  std::unordered_set<std::string> under_way_;
  std::uint64_t compiled_ = 0;
  std::size_t wanted_ = 0;  ///< units that calls of compile() have not got yet
  std::size_t ahead_ = 0;  ///< units that are compiled ahead at the moment
  std::mutex loading_;  ///< held while code is loaded; guards the next two
  std::unordered_map<std::string, std::weak_ptr<const Module>> modules_;  ///< by all that is loaded
  std::size_t most_modules_ = 64;  ///< those that are not in use any more are forgotten when there are more
  std::vector<std::future<void>> compiling_ahead_;  ///< the last member: its end waits for threads that use the others
};

}  // namespace hone
