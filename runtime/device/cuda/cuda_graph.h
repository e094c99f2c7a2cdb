// CudaGraph: captured launches as an executable graph.
#pragma once

#include <functional>
#include <memory>

#include <cuda_runtime_api.h>
#include <hone/device.h>

namespace hone {

/// Owns a cudaGraphExec_t.
class CudaGraph final : public CapturedWork {
 public:
  /// Captures what `work` enqueues on `stream`, instantiates it and puts it on the device that is current, so that the
  /// first launch has nothing left to do. Throws what `work` throws, with the capture ended.
  static std::unique_ptr<CudaGraph> capture(cudaStream_t stream, const std::function<void()>& work);
  ~CudaGraph() override;

  void launch(cudaStream_t stream) const;

 private:
  explicit CudaGraph(cudaGraphExec_t executable) : executable_(executable) {}

  cudaGraphExec_t executable_;
};

}  // namespace hone
