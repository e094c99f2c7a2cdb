// CapturePoint: the place in a capture at which a stream adds its next node.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/cuda_driver.h"

namespace hone {

struct CapturePoint {
  unsigned long long capture_id = 0;  ///< 0: the stream is not captured, or its capture is broken
  cudaGraphNode_t ahead = nullptr;    ///< the node that the next one depends on; null if that is none or several

  bool operator==(const CapturePoint&) const = default;

  /// Leaves no error behind.
  static CapturePoint of(cudaStream_t stream);
};

/// Decides whether a launch that may overlap the one ahead (PDL) says so. Nobody knows what is ahead in a stream, where
/// it gains in any case. In a graph an edge of PDL gains 0.6 µs behind a kernel that executes
/// griddepcontrol.launch_dependents, and costs 0.45 µs behind any other (sums of 256 to 65536 floats, H100, CUDA 13.0,
/// 26 November 2026). So a captured launch overlaps only another such launch, which the same thread captured just
/// ahead.
class DependentLaunch {
 public:
  explicit DependentLaunch(cudaStream_t stream) : stream_(stream) {
    if (!is_not_captured(stream)) point_ = CapturePoint::of(stream);
  }

  bool overlaps() const { return point_.capture_id == 0 || (point_.ahead != nullptr && point_ == behind_last()); }

  /// After the launch was enqueued.
  void enqueued() const {
    if (point_.capture_id != 0) behind_last() = CapturePoint::of(stream_);
  }

 private:
  /// The point behind the last such launch that the thread captured.
  static CapturePoint& behind_last() {
    static thread_local CapturePoint point;
    return point;
  }

  cudaStream_t stream_;
  CapturePoint point_;
};

}  // namespace hone
