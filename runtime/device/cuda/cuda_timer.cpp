#include "runtime/device/cuda/cuda_timer.h"

#include "runtime/device/cuda/cuda_check.h"

namespace hone {

CudaTimer::~CudaTimer() {
  for (const Span::Events& events : idle_) {
    ignore(cudaEventDestroy(events.start));
    ignore(cudaEventDestroy(events.stop));
  }
}

CudaTimer::Span::Span(CudaTimer& timer) : timer_(timer) {
  {
    const std::lock_guard lock(timer_.mutex_);
    if (!timer_.idle_.empty()) {
      events_ = timer_.idle_.back();
      timer_.idle_.pop_back();
      return;
    }
    // Room for the way back is made here, where failing is allowed.
    timer_.idle_.reserve(timer_.idle_.capacity() + 1);
  }
  check(cudaEventCreate(&events_.start), "creating an event");
  if (const cudaError_t status = cudaEventCreate(&events_.stop); status != cudaSuccess) {
    ignore(cudaEventDestroy(events_.start));
    check(status, "creating an event");
  }
}

CudaTimer::Span::~Span() {
  const std::lock_guard lock(timer_.mutex_);
  timer_.idle_.push_back(events_);
}

void CudaTimer::Span::start(cudaStream_t stream) {
  check(cudaEventRecord(events_.start, stream), "recording the start of a timing");
}

void CudaTimer::Span::stop(cudaStream_t stream) {
  check(cudaEventRecord(events_.stop, stream), "recording the end of a timing");
}

double CudaTimer::Span::wait_us() {
  check(cudaEventSynchronize(events_.stop), "waiting for timed work");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, events_.start, events_.stop), "reading a timing");
  return 1000.0 * static_cast<double>(milliseconds);
}

}  // namespace hone
