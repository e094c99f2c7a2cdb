// CudaModule: a cubin that is loaded on one device.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

 private:
  explicit CudaModule(cudaLibrary_t library) : library_(library) {}

  cudaLibrary_t library_;
  std::vector<Kernel> kernels_;
};

}  // namespace hone
