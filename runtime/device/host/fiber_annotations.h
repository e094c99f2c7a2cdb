// Tells sanitizers which stack and which logical thread runs. Without a sanitizer every function is empty.
//
// Files that include this are compiled uninstrumented (runtime/CMakeLists.txt): the engine moves between lanes in
// ways that look like races, and must not order them by accident.
#pragma once

#include <cstddef>

#if HONE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if HONE_TSAN
#include <sanitizer/tsan_interface.h>

#include <array>
#include <atomic>
#endif

namespace hone::sanitizer {

inline constexpr bool kThread = HONE_TSAN;

/// A logical thread's identity under ThreadSanitizer, and its parked fake stack under AddressSanitizer.
struct FiberState {
  void* tsan_fiber = nullptr;
  void* fake_stack = nullptr;
};

struct StackBounds {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

#if HONE_TSAN
/// ThreadSanitizer's fibers that nobody runs as, for the next that are wanted: making one sets some 100 KiB to zero,
/// which took half the time of a small kernel's check. Whoever takes one is ordered after what its last user did,
/// beside what the start of its block orders: lanes of one launch still know nothing of each other. Safe in several
/// threads.
class IdleFibers {
 public:
  void* take() {
    const Guard guard(locked_);
    return count_ > 0 ? fibers_[--count_] : nullptr;
  }

  /// False if there are enough.
  bool keep(void* fiber) {
    const Guard guard(locked_);
    if (count_ == fibers_.size()) return false;
    fibers_[count_++] = fiber;
    return true;
  }

 private:
  /// A mutex would order SMs by who was here first; of this, in uninstrumented files, ThreadSanitizer sees nothing.
  struct Guard {
    explicit Guard(std::atomic_flag& flag) : locked(flag) {
      while (locked.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Guard() { locked.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    std::atomic_flag& locked;
  };

  std::atomic_flag locked_;
  std::array<void*, 1024> fibers_{};  ///< those of 4 SMs with 256 threads; more would only take memory
  std::size_t count_ = 0;
};

inline constinit IdleFibers idle_fibers;
#endif

/// Gives the fiber an identity, unless it has one.
inline void create([[maybe_unused]] FiberState& fiber) {
#if HONE_TSAN
  if (fiber.tsan_fiber == nullptr) fiber.tsan_fiber = idle_fibers.take();
  if (fiber.tsan_fiber == nullptr) fiber.tsan_fiber = __tsan_create_fiber(0);
#endif
}

/// For a fiber that is at the end of what it ran; others are destroyed.
inline void retire([[maybe_unused]] FiberState& fiber) {
#if HONE_TSAN
  if (fiber.tsan_fiber != nullptr && !idle_fibers.keep(fiber.tsan_fiber)) __tsan_destroy_fiber(fiber.tsan_fiber);
#endif
  fiber = {};
}

inline void destroy([[maybe_unused]] FiberState& fiber) {
#if HONE_TSAN
  if (fiber.tsan_fiber != nullptr) __tsan_destroy_fiber(fiber.tsan_fiber);
#endif
  fiber = {};
}

inline void adopt_current_thread([[maybe_unused]] FiberState& fiber) {
#if HONE_TSAN
  fiber.tsan_fiber = __tsan_get_current_fiber();
#endif
}

/// Call right before a switch. `from` is null when the running stack will never be resumed.
inline void before_switch([[maybe_unused]] FiberState* from, [[maybe_unused]] const FiberState& to,
                          [[maybe_unused]] StackBounds to_stack) {
#if HONE_ASAN
  __sanitizer_start_switch_fiber(from == nullptr ? nullptr : &from->fake_stack, to_stack.bottom, to_stack.bytes);
#endif
#if HONE_TSAN
  __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

/// Call right after arriving on a stack; returns the bounds of the one that was left.
inline StackBounds after_switch([[maybe_unused]] const FiberState& self) {
  StackBounds left;
#if HONE_ASAN
  __sanitizer_finish_switch_fiber(self.fake_stack, &left.bottom, &left.bytes);
#endif
  return left;
}

/// Everything before release(token) is visible after a later acquire(token).
inline void release([[maybe_unused]] void* token) {
#if HONE_TSAN
  __tsan_release(token);
#endif
}
inline void acquire([[maybe_unused]] void* token) {
#if HONE_TSAN
  __tsan_acquire(token);
#endif
}

/// release(token) in the name of a fiber that will not run again.
inline void release_for([[maybe_unused]] const FiberState& abandoned, [[maybe_unused]] const FiberState& self,
                        [[maybe_unused]] void* token) {
#if HONE_TSAN
  if (abandoned.tsan_fiber == nullptr) return;
  __tsan_switch_to_fiber(abandoned.tsan_fiber, __tsan_switch_to_fiber_no_sync);
  __tsan_release(token);
  __tsan_switch_to_fiber(self.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

/// Bytes that must not be touched, and the end of that.
inline void poison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#if HONE_ASAN
  __asan_poison_memory_region(begin, bytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#if HONE_ASAN
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

}  // namespace hone::sanitizer
