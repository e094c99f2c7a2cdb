// TraceRange: a range on the time line of whoever listens: a profiler that understands NVTX, in the domain "hone", or a
// benchmark.
#pragma once

#include <atomic>
#include <string>

namespace hone {

namespace trace {

struct Listener {
  void (*push)(const std::string& message);
  void (*pop)() noexcept;
};

/// Null as long as nobody listens.
inline constinit std::atomic<const Listener*> listener = nullptr;

}  // namespace trace

/// Asks once whether a tool listens (NVTX_INJECTION64_PATH, or one that is in the process already), unless somebody
/// does. Cold: it may load the tool's library. A process with more rights than its user asks no tool. Does nothing in a
/// build without NVTX.
#ifdef HONE_WITH_NVTX
void start_tracing();
#else
inline void start_tracing() {}
#endif

/// Marks the time until it is destroyed, in the calling thread. Where nobody listens, that is one relaxed load.
class TraceRange {
 public:
  /// `make_message()` gives the text; it is called only if somebody listens.
  template <class MakeMessage>
  explicit TraceRange(const MakeMessage& make_message) : listener_(trace::listener.load(std::memory_order_relaxed)) {
    if (listener_) [[unlikely]]
      listener_->push(make_message());
  }
  ~TraceRange() {
    if (listener_) [[unlikely]]
      listener_->pop();
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  const trace::Listener* const listener_;
};

}  // namespace hone
