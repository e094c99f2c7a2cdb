// CudaTimer: pairs of events, to time work on a stream.
#pragma once

#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

namespace hone {

/// Keeps the events of finished timings for the next ones, since creating a pair costs as much as a short kernel.
/// Thread-safe. The events belong to the device that is current when they are first used: keep it so.
class CudaTimer {
 public:
  CudaTimer() = default;
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// A pair of events on loan; goes back on destruction.
  class Span {
   public:
    explicit Span(CudaTimer& timer);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

    void start(cudaStream_t stream);
    void stop(cudaStream_t stream);

    /// Waits for stop() to be reached in the stream; microseconds since start(), with the driver's resolution of
    /// half a microsecond. Throws Error(device_failed), also for failures of the work in between.
    double wait_us();

   private:
    friend class CudaTimer;
    struct Events {
      cudaEvent_t start = nullptr;
      cudaEvent_t stop = nullptr;
    };
    CudaTimer& timer_;
    Events events_;
  };

 private:
  std::mutex mutex_;
  std::vector<Span::Events> idle_;
};

}  // namespace hone
