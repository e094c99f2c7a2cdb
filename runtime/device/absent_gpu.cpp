#include <hone/sdk/absent_gpu.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>
#include <hone/sdk/occupancy.h>

#include "runtime/jit/cubin_resources.h"

namespace hone {
namespace {

class PlannedModule final : public Module {
 public:
  explicit PlannedModule(std::vector<Kernel> kernels) : kernels_(std::move(kernels)) {}
  const Kernel& kernel(int entry) const override { return kernels_.at(static_cast<std::size_t>(entry)); }

 private:
  std::vector<Kernel> kernels_;
};

class AbsentGpu final : public Device {
 public:
  explicit AbsentGpu(const DeviceFacts& facts) : facts_(facts) {}

  std::string_view name() const override { return facts_.name; }
  const DeviceFacts& facts() const override { return facts_; }
  std::string compiler_identity() const override { return compiler_.identity(); }
  Binary compile(const Unit& unit) const override { return compiler_.compile(unit, facts_.architecture); }
  std::size_t parallel_compilations() const override { return GpuCompiler::kMostCores; }
  std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) override;
  int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const override {
    return hone::resident_blocks(facts_, kernel.resources, block_threads, dynamic_smem_bytes);
  }

  void* allocate(std::size_t) override { reject("allocate memory"); }
  void deallocate(void*) noexcept override {}
  void copy_to_device(void*, const void*, std::size_t, Stream) override { reject("copy to the device"); }
  void copy_to_host(void*, const void*, std::size_t, Stream) override { reject("copy to the host"); }
  void copy_on_device(void*, const void*, std::size_t, Stream) override { reject("copy on the device"); }
  void fill_bytes(void*, int, std::size_t, Stream) override { reject("fill memory"); }
  MemoryKind memory_kind(const void*) const override { return MemoryKind::unknown; }
  Stream create_stream() override { reject("create a stream"); }
  void destroy_stream(Stream) noexcept override {}
  void synchronize(Stream) override { reject("wait for a stream"); }
  StreamState stream_state(Stream) const override { reject("ask for the state of a stream"); }
  void launch(const Kernel&, const Launch&, Stream) override { reject("launch a kernel"); }
  std::unique_ptr<CapturedWork> capture(Stream, const std::function<void()>&) override { reject("capture a stream"); }
  void replay(const CapturedWork&, Stream) override { reject("replay a graph"); }
  double time_us(Stream, const std::function<void()>&) override { reject("time a kernel"); }

 private:
  [[noreturn]] void reject(std::string_view what) const {
    throw Error(ErrorCode::unsupported, fmt::format("cannot {}: {} is only planned for; run this on a machine that has "
                                                    "one",
                                                    what, facts_.name));
  }

  DeviceFacts facts_;
  GpuCompiler compiler_;
};

/// The largest block that the registers of a kernel allow: cudaFuncAttributes::maxThreadsPerBlock, where the kernel has
/// no __launch_bounds__ below that.
int max_threads(const DeviceFacts& facts, const Resources& resources) {
  int threads = std::min(facts.max_threads_per_block, resources.max_threads_per_block);
  while (threads > facts.warp_threads && resident_blocks(facts, {.registers = resources.registers}, threads, 0) == 0)
    threads -= facts.warp_threads;
  return threads;
}

std::unique_ptr<Module> AbsentGpu::load(const Binary& binary, const std::vector<std::string>& entries) {
  if (binary.format != "cubin" || binary.architecture != facts_.architecture || !is_whole_elf(binary.code))
    throw Error(ErrorCode::device_failed, fmt::format("a binary of the format \"{}\" for {} is no whole cubin for {}",
                                                      binary.format, binary.architecture, facts_.architecture));
  std::vector<Kernel> kernels;
  for (const std::string& symbol : binary.entries.empty() ? entries : binary.entries) {
    std::optional<Resources> resources = cubin_resources(binary.code, symbol);
    if (!resources) throw Error(ErrorCode::device_failed, fmt::format("the cubin has no kernel \"{}\"", symbol));
    resources->max_threads_per_block = max_threads(facts_, *resources);
    kernels.push_back({.handle = nullptr, .resources = *resources});
  }
  return std::make_unique<PlannedModule>(std::move(kernels));
}

}  // namespace

std::shared_ptr<Device> make_absent_gpu(const DeviceFacts& facts) {
  if (facts.kind != "cuda")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is of the kind '{}'; only a CUDA GPU can be planned for", facts.name, facts.kind));
  return std::make_shared<AbsentGpu>(facts);
}

}  // namespace hone
