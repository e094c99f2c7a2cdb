#include "runtime/device/cuda/cuda_capture_point.h"

#include <cstddef>

#include "runtime/device/cuda/cuda_check.h"

namespace hone {

CapturePoint CapturePoint::of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CapturePoint point;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;  // asked for, because a query that would lose those of PDL fails
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t error =
      cudaStreamGetCaptureInfo(stream, &status, &point.capture_id, nullptr, &nodes, &edges, &count);
#else
  const cudaError_t error =
      cudaStreamGetCaptureInfo_v3(stream, &status, &point.capture_id, nullptr, &nodes, &edges, &count);
#endif
  ignore(error);
  if (error != cudaSuccess || status != cudaStreamCaptureStatusActive) return {};
  if (count == 1) point.ahead = nodes[0];
  return point;
}

}  // namespace hone
