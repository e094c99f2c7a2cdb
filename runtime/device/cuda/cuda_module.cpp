#include "runtime/device/cuda/cuda_module.h"

#include <fmt/format.h>
#include <hone/error.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/device/cuda/cuda_scopes.h"
#include "runtime/jit/cubin_resources.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

/// The largest thread-block cluster that needs no opting in (CUDA C++ Programming Guide, "Thread Block Clusters").
constexpr int kPortableClusterBlocks = 8;

void refuse_unfit(const Binary& binary, int ordinal, const DeviceFacts& facts) {
  if (binary.format != "cubin") {
    throw Error(ErrorCode::device_failed,
                fmt::format("cuda:{} loads binaries of the format \"cubin\", this one is \"{}\"; compile the kernel "
                            "for this device",
                            ordinal, binary.format));
  }
  if (binary.architecture != facts.architecture) {
    throw Error(ErrorCode::device_failed,
                fmt::format("the binary is for {}, cuda:{} ({}) is {}; compile the kernel for this device",
                            binary.architecture, ordinal, facts.name, facts.architecture));
  }
  if (!is_whole_elf(binary.code)) {
    throw Error(ErrorCode::device_failed,
                fmt::format("the binary of {} bytes is damaged: it is no whole cubin; compile the kernel again",
                            binary.code.size()));
  }
}

Kernel find_kernel(cudaLibrary_t library, const Binary& binary, const std::string& entry, int ordinal,
                   const DeviceFacts& facts) {
  const TraceRange traced([&] { return "function " + entry; });
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, entry.c_str()), fmt::format("looking for the kernel \"{}\"", entry));

  // Asking for a kernel's attributes also puts its code on the device, which lazy loading would otherwise leave to
  // the first launch (CUDA C++ Programming Guide, "Lazy Loading").
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel)),
        fmt::format("reading the resources of the kernel \"{}\"", entry));

  // Only a limit, which costs a kernel that stays below it nothing.
  const int static_smem_bytes = static_cast<int>(attributes.sharedSizeBytes);
  check(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        facts.smem_bytes_per_block_optin - static_smem_bytes, ordinal),
        fmt::format("allowing the kernel \"{}\" all shared memory", entry));
  if (facts.max_cluster_blocks > kPortableClusterBlocks) {
    check(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1, ordinal),
          fmt::format("allowing the kernel \"{}\" clusters of {} blocks", entry, facts.max_cluster_blocks));
  }
  return {.handle = kernel,
          .resources = {.registers = attributes.numRegs,
                        .static_smem_bytes = static_smem_bytes,
                        .local_bytes = static_cast<int>(attributes.localSizeBytes),
                        .max_threads_per_block = attributes.maxThreadsPerBlock},
          .parameter_bytes = cubin_parameters(binary.code, entry)};
}

CudaModule::Function function_of(const Kernel& kernel, const std::string& entry) {
  const CudaDriver& driver = CudaDriver::get();
  CudaModule::Function function;
  check(runtime_error(driver.current_context(&function.context)), "asking for the current context");
  check(runtime_error(driver.function_of(&function.function, cuda_kernel(kernel))),
        fmt::format("looking for the function of the kernel \"{}\"", entry));
  return function;
}

}  // namespace

std::unique_ptr<CudaModule> CudaModule::load(const Binary& binary, const std::vector<std::string>& entries, int ordinal,
                                             const DeviceFacts& facts) {
  refuse_unfit(binary, ordinal, facts);
  cudaLibrary_t library = nullptr;
  {
    const TraceRange traced([] { return std::string("module"); });
    // Without further options the driver keeps a copy of the code.
    check(cudaLibraryLoadData(&library, binary.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          fmt::format("loading a cubin of {} bytes on cuda:{}", binary.code.size(), ordinal));
  }
  std::unique_ptr<CudaModule> module(new CudaModule(library));
  const std::vector<std::string>& symbols = binary.entries.empty() ? entries : binary.entries;
  module->functions_.reserve(symbols.size());
  for (const std::string& symbol : symbols) {
    Kernel& kernel = module->kernels_.emplace_back(find_kernel(library, binary, symbol, ordinal, facts));
    kernel.function = &module->functions_.emplace_back(function_of(kernel, symbol));
  }
  return module;
}

CudaModule::~CudaModule() {
  const RelaxedCaptureScope relaxed;
  ignore(cudaLibraryUnload(library_));
}

}  // namespace hone
