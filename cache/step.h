// Step: marks what an operation on the file is doing, for whoever observes.
#pragma once

#include <atomic>

namespace hone::cache {

struct StepObserver {
  void (*begin)(const char* step);
  void (*end)() noexcept;
};

/// Null as long as nobody observes. Must be set before other threads use the cache.
inline constinit std::atomic<const StepObserver*> step_observer = nullptr;

/// Lasts until it is destroyed, in the calling thread.
class Step {
 public:
  explicit Step(const char* step) : observer_(step_observer.load(std::memory_order_relaxed)) {
    if (observer_) observer_->begin(step);
  }
  ~Step() {
    if (observer_) observer_->end();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  const StepObserver* const observer_;
};

}  // namespace hone::cache
