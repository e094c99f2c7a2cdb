// HostStreams: the streams of a host device, in each of which one thing happens at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <hone/stream.h>

namespace hone {

/// The host device executes a call while it is being made, on the caller's thread: a stream orders the calls of several
/// threads. Any value is a stream, nullptr and handles of other devices, too. Two streams may have to wait for each
/// other now and then, which changes no result. Thread-safe.
class HostStreams {
 public:
  /// A stream that is not in use. One that was destroyed may come back.
  Stream create();
  void destroy(Stream stream) noexcept;

  /// Waits until nothing is executed in the stream; nothing else is until the result is destroyed. A thread has one
  /// turn at a time.
  [[nodiscard]] std::unique_lock<std::mutex> wait_for_turn(Stream stream);

 private:
  static constexpr std::size_t kTurns = 64;

  std::mutex mutex_;
  std::uintptr_t created_ = 0;
  std::vector<Stream> idle_;
  std::array<std::mutex, kTurns> turns_;  ///< of the streams whose numbers have the same remainder
};

}  // namespace hone
