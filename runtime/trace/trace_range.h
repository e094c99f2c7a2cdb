// TraceRange: a range on the time line of a profiler that understands NVTX, in the domain "hone".
#pragma once

#ifdef HONE_WITH_NVTX
#include <atomic>
#endif
#include <string>

namespace hone {

#ifdef HONE_WITH_NVTX

namespace trace {

/// The handle of the domain; null until start_tracing() has found a tool that listens.
inline constinit std::atomic<void*> domain = nullptr;

void push(const std::string& message);
void pop() noexcept;

}  // namespace trace

/// Asks once whether a tool listens (NVTX_INJECTION64_PATH, or one that is in the process already). Cold: it may load
/// the tool's library. A process with more rights than its user asks no tool.
void start_tracing();

/// Marks the time until it is destroyed, in the calling thread. Where no tool listens, that is one relaxed load.
class TraceRange {
 public:
  /// `make_message()` gives the text; it is called only if a tool listens.
  template <class MakeMessage>
  explicit TraceRange(const MakeMessage& make_message) : is_open_(trace::domain.load(std::memory_order_relaxed)) {
    if (is_open_) [[unlikely]]
      trace::push(make_message());
  }
  ~TraceRange() {
    if (is_open_) [[unlikely]]
      trace::pop();
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  const bool is_open_;
};

#else

inline void start_tracing() {}

class TraceRange {
 public:
  template <class MakeMessage>
  explicit TraceRange(const MakeMessage&) {}
  ~TraceRange() {}
};

#endif

}  // namespace hone
