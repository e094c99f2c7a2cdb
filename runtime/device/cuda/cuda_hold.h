// CudaHold: a stream waits for the host.
#pragma once

#include <atomic>
#include <memory>

#include <cuda_runtime_api.h>
#include <hone/device.h>

namespace hone {

/// Enqueues a host function that returns when the hold is destroyed, or after kPatience: what is enqueued meanwhile may
/// need the device before it returns (loading code does), and must not wait for ever. Uses the driver's thread for host
/// functions, which all streams of a process share.
class CudaHold final : public StreamHold {
 public:
  explicit CudaHold(cudaStream_t stream);
  ~CudaHold() override { *is_over_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> is_over_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace hone
