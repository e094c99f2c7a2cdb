#include "runtime/device/cuda/cuda_streams.h"

#include "runtime/device/cuda/cuda_check.h"

namespace hone {
namespace {

bool is_idle(cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaError_t status = cudaStreamIsCapturing(stream, &capture);
  if (status == cudaSuccess && capture == cudaStreamCaptureStatusNone) status = cudaStreamQuery(stream);
  ignore(status);
  return status == cudaSuccess && capture == cudaStreamCaptureStatusNone;
}

}  // namespace

CudaStreams::~CudaStreams() {
  for (const cudaStream_t stream : idle_) ignore(cudaStreamDestroy(stream));
}

cudaStream_t CudaStreams::take() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    const cudaStream_t stream = idle_.back();
    idle_.pop_back();
    return stream;
  }
  idle_.reserve(idle_.capacity() + 1);  // room for the way back is made here, where failing is allowed
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

void CudaStreams::give_back(cudaStream_t stream) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_idle(stream)) {
    idle_.push_back(stream);
  } else {
    ignore(cudaStreamDestroy(stream));
  }
}

}  // namespace hone
