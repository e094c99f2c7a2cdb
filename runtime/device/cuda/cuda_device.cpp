#include "runtime/device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>

#include "runtime/device/cuda/cuda_capture_point.h"
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_comparison.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/device/cuda/cuda_facts.h"
#include "runtime/device/cuda/cuda_graph.h"
#include "runtime/device/cuda/cuda_hold.h"
#include "runtime/device/cuda/cuda_limits.h"
#include "runtime/device/cuda/cuda_memory.h"
#include "runtime/device/cuda/cuda_module.h"
#include "runtime/device/cuda/cuda_scopes.h"
#include "runtime/device/cuda/cuda_streams.h"
#include "runtime/device/cuda/cuda_timer.h"
#include "runtime/device/nvml/nvml_monitor.h"
#include "runtime/jit/nvrtc_compiler.h"

namespace hone {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : ordinal_(ordinal),
        name_(fmt::format("cuda:{}", ordinal)),
        facts_(query_cuda_facts(ordinal)),
        memory_(ordinal) {}

  ~CudaDevice() override = default;

  std::string_view name() const override { return name_; }
  const DeviceFacts& facts() const override { return facts_; }

  DeviceLimits limits() override;
  void set_limits(const DeviceLimits& limits) override {
    const std::scoped_lock lock(limits_mutex_);
    limits_ = limits;
  }

  std::string compiler_identity() const override { return compiler_.identity(); }
  Binary compile(const Unit& unit) const override { return compiler_.compile(unit, facts_.architecture); }
  std::size_t parallel_compilations() const override { return GpuCompiler::kMostCores; }

  std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) override {
    const DeviceGuard guard(ordinal_);
    const RelaxedCaptureScope relaxed;
    return CudaModule::load(binary, entries, ordinal_, facts_);
  }

  int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const override;
  std::int64_t resident_clusters(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes,
                                 int cluster_blocks) const override;
  int usable_sms() const override;

  std::int64_t free_memory_bytes() const override { return memory_.free_bytes(); }
  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void deallocate(void* pointer) noexcept override { memory_.deallocate(pointer); }

  void copy_to_device(void* to, const void* from_host, std::size_t bytes, Stream stream) override {
    copy(to, from_host, bytes, cudaMemcpyHostToDevice, stream, "copying to the device");
  }
  void copy_to_host(void* to_host, const void* from, std::size_t bytes, Stream stream) override {
    copy(to_host, from, bytes, cudaMemcpyDeviceToHost, stream, "copying to the host");
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, "copying on the device");
  }
  void fill_bytes(void* to, int byte_value, std::size_t bytes, Stream stream) override {
    if (bytes == 0) return;
    const DeviceGuard guard(ordinal_);
    check(cudaMemsetAsync(to, byte_value, bytes, stream), "filling device memory");
  }

  std::vector<std::size_t> first_differences(std::span<const RepeatedBytes> runs, Stream stream) override {
    if (std::optional<std::vector<std::size_t>> found = comparison_.first_differences(runs, stream)) return *found;
    return Device::first_differences(runs, stream);
  }
  MemoryKind memory_kind(const void* pointer) const override;
  std::string memory_owner(const void* pointer) const override;

  Stream create_stream() override {
    const DeviceGuard guard(ordinal_);
    const RelaxedCaptureScope relaxed;
    return streams_.take();
  }
  void destroy_stream(Stream stream) noexcept override {
    const RelaxedCaptureScope relaxed;
    streams_.give_back(stream);
  }

  void synchronize(Stream stream) override {
    const DeviceGuard guard(ordinal_);
    const RelaxedCaptureScope relaxed;
    check(cudaStreamSynchronize(stream), "waiting for a stream");
  }

  StreamState stream_state(Stream stream) const override;
  void launch(const Kernel& kernel, const Launch& launch, Stream stream) override;
  std::unique_ptr<CapturedWork> capture(Stream stream, const std::function<void()>& work) override {
    const DeviceGuard guard(ordinal_);
    return CudaGraph::capture(stream, work);
  }
  void replay(const CapturedWork& work, Stream stream) override {
    const DeviceGuard guard(ordinal_);
    static_cast<const CudaGraph&>(work).launch(stream);
  }
  std::unique_ptr<StreamHold> hold(Stream stream) override {
    const DeviceGuard guard(ordinal_);
    return std::make_unique<CudaHold>(stream);
  }
  double time_us(Stream stream, const std::function<void()>& work) override;
  DeviceCondition condition() const override { return monitor().condition(); }
  EnergyReading energy() const override { return monitor().energy(); }

 private:
  std::optional<cudaPointerAttributes> pointer_attributes(const void* pointer) const;
  int sms_of_stream(Stream stream) const;
  void require_room(const Kernel& kernel, const Launch& launch, Stream stream) const;
  [[noreturn]] void refuse_grid(const Launch& launch) const;

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream stream, std::string_view doing) {
    if (bytes == 0) return;
    const DeviceGuard guard(ordinal_);
    check(cudaMemcpyAsync(to, from, bytes, kind, stream), doing);
  }

  int ordinal_;
  std::string name_;
  DeviceFacts facts_;
  NvrtcCompiler compiler_{NvrtcSearch::from_environment()};
  CudaMemory memory_;
  CudaStreams streams_;
  CudaTimer timer_;
  CudaComparison comparison_{*this};
  std::mutex limits_mutex_;
  std::optional<DeviceLimits> limits_;  ///< measured when first asked: only tuning asks
  const NvmlMonitor& monitor() const;

  mutable std::once_flag monitor_once_;
  mutable std::optional<NvmlMonitor> monitor_;  ///< opened when first asked: only tuning asks
};

DeviceLimits CudaDevice::limits() {
  const std::scoped_lock lock(limits_mutex_);
  if (limits_) return *limits_;
  try {
    limits_ = measure_limits(*this);
  } catch (const Error& error) {
    // Without a compiler, or memory, the model's constants have to do.
    if (error.code() == ErrorCode::device_lost) throw;
    limits_ = DeviceLimits{};
  }
  return *limits_;
}

int CudaDevice::resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const {
  const Resources& resources = kernel.resources;
  const auto static_smem_bytes = static_cast<std::size_t>(resources.static_smem_bytes);
  const auto smem_limit = static_cast<std::size_t>(facts_.smem_bytes_per_block_optin);
  if (block_threads < 1 || block_threads > resources.max_threads_per_block) return 0;
  if (dynamic_smem_bytes > smem_limit - static_smem_bytes) return 0;
  const DeviceGuard guard(ordinal_);
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.handle, block_threads, dynamic_smem_bytes),
        fmt::format("asking for the occupancy of blocks of {} threads", block_threads));
  return blocks;
}

std::int64_t CudaDevice::resident_clusters(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes,
                                           int cluster_blocks) const {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster_blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(cluster_blocks), 1, 1};
  config.blockDim = {static_cast<unsigned>(block_threads), 1, 1};
  config.dynamicSmemBytes = dynamic_smem_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const DeviceGuard guard(ordinal_);
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, kernel.handle, &config),
        fmt::format("asking for the occupancy of clusters of {} blocks", cluster_blocks));
  return clusters;
}

/// The SMs of a CUdevResource that a call of the driver has filled in; `otherwise` if it has not.
int sms_of(CUresult result, const CUdevResource& resource, int otherwise) {
  if (result != CUDA_SUCCESS || resource.type != CU_DEV_RESOURCE_TYPE_SM) return otherwise;
  return std::min(static_cast<int>(resource.sm.smCount), otherwise);
}

/// A green context has a part of the SMs; so has any context where MPS divides SMs between contexts
/// (CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING). The facts know the limit of a whole process already.
int CudaDevice::usable_sms() const {
  const DeviceGuard guard(ordinal_);
  const CudaDriver& driver = CudaDriver::get();
  CUcontext context = nullptr;
  CUdevResource resource{};
  if (!driver.context_resource || driver.current_context(&context) != CUDA_SUCCESS) return facts_.sm_count;
  return sms_of(driver.context_resource(context, &resource, CU_DEV_RESOURCE_TYPE_SM), resource, facts_.sm_count);
}

/// The SMs of the green context that a stream belongs to, or those of its device.
int CudaDevice::sms_of_stream(Stream stream) const {
  const CudaDriver& driver = CudaDriver::get();
  CUgreenCtx context = nullptr;
  CUdevResource resource{};
  const bool is_green = driver.green_context_of && driver.green_context_resource &&
                        driver.green_context_of(stream, &context) == CUDA_SUCCESS && context != nullptr;
  if (!is_green) return facts_.sm_count;
  return sms_of(driver.green_context_resource(context, &resource, CU_DEV_RESOURCE_TYPE_SM), resource, facts_.sm_count);
}

/// Refuses a cooperative launch that is captured before the driver does, whose refusal would end the capture. Nor does
/// the driver refuse one in a stream of a green context that has too few SMs: its replay never ends (H100, CUDA 13.0,
/// 27 November 2026).
void CudaDevice::require_room(const Kernel& kernel, const Launch& launch, Stream stream) const {
  if (is_not_captured(stream)) return;
  const std::int64_t blocks = std::int64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const int threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  const std::int64_t resident = resident_blocks(kernel, threads, launch.dynamic_smem_bytes);
  if (blocks > resident * sms_of_stream(stream)) refuse_grid(launch);
}

void CudaDevice::refuse_grid(const Launch& launch) const {
  throw NotResident(fmt::format("the {}x{}x{} blocks of {} threads of a launch on {} have to be resident at once, and "
                                "there is no room for them",
                                launch.grid.x, launch.grid.y, launch.grid.z,
                                launch.block.x * launch.block.y * launch.block.z, name_));
}

/// Returns what the driver knows about a pointer; nothing about those that it refuses to look at.
std::optional<cudaPointerAttributes> CudaDevice::pointer_attributes(const void* pointer) const {
  const DeviceGuard guard(ordinal_);
  cudaPointerAttributes attributes{};
  const cudaError_t status = cudaPointerGetAttributes(&attributes, pointer);
  if (status == cudaErrorInvalidValue) {
    ignore(status);
    return std::nullopt;
  }
  check(status, "asking where a pointer points to");
  return attributes;
}

// Device memory is memory of this device, and managed memory. Kernels can also read what is page-locked on the host,
// and a peer's memory where access is enabled: over a bus or a link, which is not what anything is tuned for. The
// driver cannot tell ordinary host memory from an address that is nowhere; both are `host`.
MemoryKind CudaDevice::memory_kind(const void* pointer) const {
  if (pointer == nullptr) return MemoryKind::unknown;
  const std::optional<cudaPointerAttributes> attributes = pointer_attributes(pointer);
  if (!attributes) return MemoryKind::unknown;
  switch (attributes->type) {
    case cudaMemoryTypeDevice:
      if (attributes->device != ordinal_) return MemoryKind::peer;
      [[fallthrough]];
    case cudaMemoryTypeManaged:
      return attributes->devicePointer != nullptr ? MemoryKind::device : MemoryKind::unknown;
    case cudaMemoryTypeHost:
    case cudaMemoryTypeUnregistered:
      return MemoryKind::host;
  }
  return MemoryKind::unknown;
}

std::string CudaDevice::memory_owner(const void* pointer) const {
  const std::optional<cudaPointerAttributes> attributes = pointer ? pointer_attributes(pointer) : std::nullopt;
  if (!attributes || attributes->type != cudaMemoryTypeDevice) return Device::memory_owner(pointer);
  return fmt::format("{} (cuda:{})", query_cuda_facts(attributes->device).name, attributes->device);
}

/// True if a handle means a default stream: the one of whichever device is current.
bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

/// The same number for all handles of one stream, and no other stream's for the life of the process: a handle may come
/// back when its stream is destroyed, though not all of its work is done, and cudaStreamPerThread is one handle for a
/// stream in every thread. A stream that is being captured cannot be asked.
std::uint64_t stream_number(cudaStream_t stream) {
  unsigned long long number = 0;
  check(runtime_error(CudaDriver::get().stream_id(stream, &number)), "asking for the number of a stream");
  return number;
}

/// The same for all handles of one stream, as long as it exists.
std::uint64_t stream_handle(cudaStream_t stream) {
  static thread_local char of_this_thread;
  if (stream == cudaStreamPerThread) return reinterpret_cast<std::uintptr_t>(&of_this_thread);
  return stream == cudaStreamLegacy ? 0 : reinterpret_cast<std::uintptr_t>(stream);
}

// A capture that an error has broken counts as capturing, until its owner ends it. So does the default stream while
// a blocking stream is captured: nothing may be enqueued there either, and the launch will say so, but the caller
// must not tune or allocate first. That state has no capture of its own and the id 0.
StreamState CudaDevice::stream_state(Stream stream) const {
  std::optional<DeviceGuard> guard;
  if (is_default(stream)) guard.emplace(ordinal_);
  if (is_not_captured(stream)) return {.id = stream_number(stream)};
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  const cudaError_t status = cudaStreamGetCaptureInfo(stream, &capture, &id);
  if (status == cudaErrorStreamCaptureImplicit) {
    ignore(status);
    return {.id = stream_handle(stream), .capturing = true, .capture_id = 0};
  }
  check(status, "asking whether a stream is being captured");
  if (capture == cudaStreamCaptureStatusNone) return {.id = stream_number(stream)};
  return {.id = stream_handle(stream),
          .capturing = true,
          .capture_id = capture == cudaStreamCaptureStatusActive ? id : 0};
}

void CudaDevice::launch(const Kernel& kernel, const Launch& launch, Stream stream) {
  if (launch.cooperative) require_room(kernel, launch, stream);
  std::array<void*, Arguments::kCapacity> pointers;
  for (int i = 0; i < launch.arguments.count(); ++i) {
    pointers[static_cast<std::size_t>(i)] = const_cast<void*>(launch.arguments.value(i));  // CUDA only reads them
  }
  std::array<CUlaunchAttribute, 3> attributes;
  CUlaunchConfig config{.gridDimX = launch.grid.x,
                        .gridDimY = launch.grid.y,
                        .gridDimZ = launch.grid.z,
                        .blockDimX = launch.block.x,
                        .blockDimY = launch.block.y,
                        .blockDimZ = launch.block.z,
                        .sharedMemBytes = launch.dynamic_smem_bytes,
                        .hStream = stream,
                        .attrs = attributes.data(),
                        .numAttrs = 0};
  // In the context of the function its device is current; in another one the kernel has another function.
  const CudaDriver& driver = CudaDriver::get();
  const auto& known = *static_cast<const CudaModule::Function*>(kernel.function);
  CUfunction function = known.function;
  CUcontext context = nullptr;
  std::optional<DeviceGuard> guard;
  if (driver.current_context(&context) != CUDA_SUCCESS || context != known.context) {
    guard.emplace(ordinal_);
    function = reinterpret_cast<CUfunction>(cuda_kernel(kernel));
  }
  std::optional<DependentLaunch> dependent;
  if (launch.dependent_launch && !launch.cooperative && facts_.has_dependent_launch) dependent.emplace(stream);
  if (dependent && dependent->overlaps()) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.cluster_blocks > 1) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {launch.cluster_blocks, 1, 1};
  }
  if (launch.cooperative) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  const cudaError_t status = runtime_error(driver.launch(&config, function, pointers.data(), nullptr));
  if (status == cudaErrorCooperativeLaunchTooLarge) [[unlikely]] {
    ignore(status);
    refuse_grid(launch);
  }
  if (status != cudaSuccess) [[unlikely]] {
    check(status, fmt::format("launching {}x{}x{} {} of {}x{}x{} threads with {} bytes of dynamic shared memory in "
                              "clusters of {} (cuda:{} allows {})",
                              launch.grid.x, launch.grid.y, launch.grid.z,
                              launch.cooperative ? "blocks that have to be resident at once" : "blocks", launch.block.x,
                              launch.block.y, launch.block.z, launch.dynamic_smem_bytes, launch.cluster_blocks,
                              ordinal_, facts_.max_cluster_blocks));
  }
  if (dependent) dependent->enqueued();
}

// The device stays current while `work` runs, so that its launches find it current.
double CudaDevice::time_us(Stream stream, const std::function<void()>& work) {
  const DeviceGuard guard(ordinal_);
  const RelaxedCaptureScope relaxed;
  CudaTimer::Span span(timer_);
  span.start(stream);
  work();
  span.stop(stream);
  return span.wait_us();
}

const NvmlMonitor& CudaDevice::monitor() const {
  std::call_once(monitor_once_, [this] {
    std::array<char, 32> bus_id{};
    check(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal_), "asking for a PCI address");
    monitor_.emplace(bus_id.data());
  });
  return *monitor_;
}

}  // namespace

std::shared_ptr<Device> make_cuda_device(int ordinal) {
  std::string reason;
  const int count = cuda_device_count(reason);
  if (count == 0) throw Error(ErrorCode::unsupported, fmt::format("cuda:{} cannot be opened: {}", ordinal, reason));
  if (ordinal < 0 || ordinal >= count) {
    throw Error(
        ErrorCode::not_found,
        fmt::format("there is no device cuda:{}; the CUDA devices here are cuda:0 to cuda:{}", ordinal, count - 1));
  }
  return std::make_shared<CudaDevice>(ordinal);
}

}  // namespace hone
