// GreenStream: a CUDA stream of a green context, whose kernels run on a part of the SMs.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace hone {

/// Belongs to cuda:0. There is no stream without green contexts, which came with CUDA 12.4, and on a GPU that cannot be
/// divided.
class GreenStream {
 public:
  GreenStream() {
    if (cudaSetDevice(0) != cudaSuccess || !find_all()) return;
    CUdevResource device{}, rest{};
    unsigned groups = 1;
    CUdevResourceDesc description{};
    if (device_resource_(0, &device, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
        split_(&part_, &groups, &device, &rest, 0, device.sm.smCount / 2) != CUDA_SUCCESS || groups != 1 ||
        describe_(&description, &part_, 1) != CUDA_SUCCESS ||
        create_(&context_, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS)
      return;
    if (create_stream_(&stream_, context_, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS) stream_ = nullptr;
  }
  ~GreenStream() {
    if (stream_) cudaStreamDestroy(stream_);
    if (context_) destroy_(context_);
  }
  GreenStream(const GreenStream&) = delete;
  GreenStream& operator=(const GreenStream&) = delete;

  cudaStream_t get() const { return stream_; }  ///< nullptr: there is none
  unsigned sms() const { return part_.sm.smCount; }

 private:
  template <class Function>
  static bool find(Function*& function, const char* symbol) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion(symbol, &address, 12050, cudaEnableDefault, &found) != cudaSuccess)
      return false;
    function = reinterpret_cast<Function*>(address);
    return function != nullptr;
  }
  bool find_all() {
    return find(device_resource_, "cuDeviceGetDevResource") && find(split_, "cuDevSmResourceSplitByCount") &&
           find(describe_, "cuDevResourceGenerateDesc") && find(create_, "cuGreenCtxCreate") &&
           find(create_stream_, "cuGreenCtxStreamCreate") && find(destroy_, "cuGreenCtxDestroy");
  }

  decltype(cuDeviceGetDevResource)* device_resource_ = nullptr;
  decltype(cuDevSmResourceSplitByCount)* split_ = nullptr;
  decltype(cuDevResourceGenerateDesc)* describe_ = nullptr;
  decltype(cuGreenCtxCreate)* create_ = nullptr;
  decltype(cuGreenCtxStreamCreate)* create_stream_ = nullptr;
  decltype(cuGreenCtxDestroy)* destroy_ = nullptr;
  CUdevResource part_{};
  CUgreenCtx context_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace hone
