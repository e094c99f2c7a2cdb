// HostModule: a loaded shared object with kernels in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <hone/kernel.h>

#include "runtime/device/host/block_runner.h"

namespace hone {

class HostModule;

/// Kernel::handle of the host device points to one of these.
struct HostKernel {
  const HostModule* module = nullptr;
  const hone_host::Entry* entry = nullptr;
  std::string label;  ///< entry and unit, for messages
};

/// Loads from memory; nothing is left on disk. Thread-safe after construction.
class HostModule final : public Module {
 public:
  /// Throws device_failed when `binary` is not a module of this version, or lacks one of `entries`.
  HostModule(const Binary& binary, const std::vector<std::string>& entries);

  const Kernel& kernel(int entry) const override;

  /// The calling thread's shared memory for a launch.
  SharedMemory shared_memory(std::size_t dynamic_bytes) const;

  std::size_t static_smem_bytes() const { return static_smem_bytes_; }
  CodeRange code() const { return code_; }

  /// Lets the module tell what happens, as far as it was compiled for that; null: nobody. Not during a launch.
  void set_hooks(const hone_host::Hooks& hooks) const;

 private:
  class Library;
  std::shared_ptr<Library> library_;
  const hone_host::ModuleDescriptor* descriptor_ = nullptr;
  std::size_t static_smem_bytes_ = 0;
  CodeRange code_;
  hone_host::Hooks* hooks_ = nullptr;  ///< null: it has none
  std::vector<HostKernel> host_kernels_;
  std::vector<Kernel> kernels_;
};

}  // namespace hone
