#include "runtime/device/host/host_device.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include <hone/error.h>

#include "runtime/device/host/access_trace.h"
#include "runtime/device/host/block_queue.h"
#include "runtime/device/host/block_state.h"
#include "runtime/device/host/guarded_memory.h"
#include "runtime/device/host/host_facts.h"
#include "runtime/device/host/host_module.h"
#include "runtime/device/host/host_streams.h"
#include "runtime/device/host/sm_pool.h"
#include "runtime/device/nvml/nvml_monitor.h"
#include "runtime/jit/host_compiler.h"

namespace hone {
namespace {

/// The host device has no graphs: what was captured is called.
class HostCapturedWork final : public CapturedWork {
 public:
  explicit HostCapturedWork(std::function<void()> work) : work_(std::move(work)) {}
  void run() const { work_(); }

 private:
  std::function<void()> work_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostOptions& options)
      : options_(options),
        facts_(host_facts(options.sm_count)),
        compiler_(options.compiler, facts_.architecture, options.instrumentation),
        watchdog_(std::make_unique<Watchdog>(options.block_deadline, options.counts_waiting)),
        pool_(std::make_unique<SmPool>(facts_.sm_count)) {}

  ~HostDevice() override {
    if (is_inherited()) {
      // There are no threads to join, and another one may have held what the objects lock.
      static_cast<void>(watchdog_.release());
      static_cast<void>(pool_.release());
    }
  }

  std::string_view name() const override { return "host"; }
  const DeviceFacts& facts() const override { return facts_; }

  std::string compiler_identity() const override { return compiler_.identity(); }
  Binary compile(const Unit& unit) const override { return compiler_.compile(unit); }
  std::size_t parallel_compilations() const override { return std::max(1u, std::thread::hardware_concurrency()); }
  std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) override;
  int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const override;

  std::int64_t free_memory_bytes() const override { return host_free_memory_bytes(); }
  void* allocate(std::size_t bytes) override;
  void deallocate(void* pointer) noexcept override;
  void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    copy(to, from, bytes, stream);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) override {
    copy(to, from, bytes, stream);
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    copy(to, from, bytes, stream);
  }
  void fill_bytes(void* to, int byte_value, std::size_t bytes, Stream stream) override {
    require_own_process();
    const auto turn = streams_.wait_for_turn(stream);
    require_within(to, bytes);
    if (bytes > 0) std::memset(to, byte_value, bytes);
  }
  std::vector<std::size_t> first_differences(std::span<const RepeatedBytes> runs, Stream stream) override {
    require_own_process();
    const auto turn = streams_.wait_for_turn(stream);
    std::vector<std::size_t> differences;
    for (const RepeatedBytes& run : runs) {
      require_within(run.found, run.bytes);
      differences.push_back(first_difference(run.found, run.bytes, run.expected));
    }
    return differences;
  }
  MemoryKind memory_kind(const void* pointer) const override;

  Stream create_stream() override {
    require_own_process();
    return streams_.create();
  }
  void destroy_stream(Stream stream) noexcept override {
    if (!is_inherited()) streams_.destroy(stream);
  }
  void synchronize(Stream stream) override {
    require_own_process();
    const auto turn = streams_.wait_for_turn(stream);
  }
  StreamState stream_state(Stream stream) const override {
    require_own_process();
    return {.id = reinterpret_cast<std::uintptr_t>(stream)};
  }
  void launch(const Kernel& kernel, const Launch& launch, Stream stream) override;
  std::unique_ptr<CapturedWork> capture(Stream, const std::function<void()>& work) override {
    return std::make_unique<HostCapturedWork>(work);
  }
  void replay(const CapturedWork& work, Stream) override { static_cast<const HostCapturedWork&>(work).run(); }
  double time_us(Stream stream, const std::function<void()>& work) override;

  /// A CPU has no NVML of its own, so one must be named.
  EnergyReading energy() const override {
    if (named_nvml().empty())
      return {.missing = "a CPU has no counter that Hone reads; HONE_NVML may name a library with NVML's functions"};
    std::call_once(monitor_once_, [this] { monitor_.emplace("host"); });
    return monitor_->energy();
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
    require_own_process();
    const auto turn = streams_.wait_for_turn(stream);
    for (const void* pointer : {const_cast<const void*>(to), from}) require_within(pointer, bytes);
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  using Allocations = std::map<std::uintptr_t, GuardedMemory>;  ///< by address
  Allocations::const_iterator allocation_of(const void* pointer) const;
  void require_within(const void* pointer, std::size_t bytes) const;
  void check_launch(const HostKernel& kernel, const Launch& launch) const;
  std::string array_at(std::uintptr_t address, const Launch& launch) const;

  /// True in a forked child of the process that made the device. It has none of the device's threads.
  bool is_inherited() const noexcept { return ::getpid() != process_; }
  void require_own_process() const;

  const ::pid_t process_ = ::getpid();
  HostOptions options_;
  DeviceFacts facts_;
  HostCompiler compiler_;
  mutable std::mutex memory_mutex_;
  Allocations allocations_;
  HostStreams streams_;
  std::mutex launch_mutex_;
  std::unique_ptr<Watchdog> watchdog_;
  mutable std::once_flag monitor_once_;
  mutable std::optional<NvmlMonitor> monitor_;  ///< opened when first asked
  std::unique_ptr<SmPool> pool_;
};

void HostDevice::require_own_process() const {
  if (!is_inherited()) return;
  throw Error(
      ErrorCode::device_lost,
      fmt::format("this host device was opened by process {}, and its threads did not come along when process {} "
                  "was forked; open a device, and a Session of it, in the child",
                  process_, ::getpid()));
}

std::unique_ptr<Module> HostDevice::load(const Binary& binary, const std::vector<std::string>& entries) {
  require_own_process();
  if (binary.format != "elf" || binary.architecture != facts_.architecture) {
    throw Error(ErrorCode::device_failed, fmt::format("the host device loads elf binaries for {}, not {} for {}",
                                                      facts_.architecture, binary.format, binary.architecture));
  }
  return std::make_unique<HostModule>(binary, entries);
}

int HostDevice::resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const {
  const auto smem_bytes = static_cast<std::size_t>(kernel.resources.static_smem_bytes);
  const auto limit = static_cast<std::size_t>(facts_.smem_bytes_per_block_optin);
  const bool fits = block_threads > 0 && block_threads <= facts_.max_threads_per_block && smem_bytes <= limit &&
                    dynamic_smem_bytes <= limit - smem_bytes;
  return fits ? 1 : 0;
}

void* HostDevice::allocate(std::size_t bytes) {
  require_own_process();
  const auto most = static_cast<std::size_t>(facts_.memory_bytes);
  try {
    // Pages take memory when they are touched, so that more could be promised than there is.
    if (bytes > most) throw std::bad_alloc();
    GuardedMemory memory(std::max<std::size_t>(bytes, 1));
    void* const pointer = memory.data();
    const std::lock_guard lock(memory_mutex_);
    allocations_.emplace(reinterpret_cast<std::uintptr_t>(pointer), std::move(memory));
    return pointer;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the host device cannot allocate {} bytes; the machine has {}", bytes, most));
  }
}

void HostDevice::deallocate(void* pointer) noexcept {
  if (pointer == nullptr || is_inherited()) return;
  const std::lock_guard lock(memory_mutex_);
  allocations_.erase(reinterpret_cast<std::uintptr_t>(pointer));
}

/// The allocation that has the address; the end if there is none. Under the lock.
HostDevice::Allocations::const_iterator HostDevice::allocation_of(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return allocations_.end();
  --found;
  return address - found->first < found->second.size() ? found : allocations_.end();
}

/// Throws if the bytes begin in an allocation and go beyond its end.
void HostDevice::require_within(const void* pointer, std::size_t bytes) const {
  const std::lock_guard lock(memory_mutex_);
  const auto found = allocation_of(pointer);
  if (found == allocations_.end()) return;
  const std::size_t left = found->first + found->second.size() - reinterpret_cast<std::uintptr_t>(pointer);
  if (bytes <= left) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} bytes at {} are more than the {} to the end of an array of {} bytes on the host device; "
                          "pass a larger array",
                          bytes, pointer, left, found->second.size()));
}

MemoryKind HostDevice::memory_kind(const void* pointer) const {
  require_own_process();
  const std::lock_guard lock(memory_mutex_);
  return allocation_of(pointer) != allocations_.end() ? MemoryKind::device : MemoryKind::host;
}

/// Which array of a launch an address is in or near; "" if it is far from all. It follows a line break.
std::string HostDevice::array_at(std::uintptr_t address, const Launch& launch) const {
  const std::lock_guard lock(memory_mutex_);
  for (int i = 0; i < launch.arguments.count(); ++i) {
    std::uintptr_t pointer = 0;
    if (launch.arguments.bytes(i) != sizeof(pointer)) continue;
    std::memcpy(&pointer, launch.arguments.value(i), sizeof(pointer));
    const auto found = allocations_.find(pointer);
    if (found == allocations_.end()) continue;
    if (const std::string place = found->second.place_of(address); !place.empty())
      return fmt::format("\n  argument {} points to {} bytes: {}", i + 1, found->second.size(), place);
  }
  return "";
}

void HostDevice::check_launch(const HostKernel& kernel, const Launch& launch) const {
  const auto reject = [&](const std::string& why) {
    throw Error(ErrorCode::device_failed,
                fmt::format("the host device cannot launch kernel {}: {}", kernel.label, why));
  };
  const auto threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (launch.block.x > 1024 || launch.block.y > 1024 || launch.block.z > 64 || threads < 1 || threads > 1024) {
    reject(fmt::format("a block of {}×{}×{} threads; 1 to 1024 are possible, 64 in z", launch.block.x, launch.block.y,
                       launch.block.z));
  }
  if (launch.grid.x < 1 || launch.grid.x > 0x7fffffff || launch.grid.y < 1 || launch.grid.y > 65535 ||
      launch.grid.z < 1 || launch.grid.z > 65535) {
    reject(fmt::format("a grid of {}×{}×{} blocks; 1 to 2147483647×65535×65535 are possible", launch.grid.x,
                       launch.grid.y, launch.grid.z));
  }
  if (launch.cluster_blocks > 1) {
    reject(fmt::format("clusters of {} blocks; it has no thread-block clusters (DeviceFacts::max_cluster_blocks is 0)",
                       launch.cluster_blocks));
  }
  if (const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
      launch.cooperative && blocks > static_cast<std::uint64_t>(facts_.sm_count)) {
    throw NotResident(fmt::format(
        "the host device cannot launch kernel {}: a cooperative grid of {} blocks; it runs {} at once", kernel.label,
        blocks, facts_.sm_count));
  }
  const std::size_t smem_bytes = kernel.module->static_smem_bytes() + launch.dynamic_smem_bytes;
  if (smem_bytes > static_cast<std::size_t>(facts_.smem_bytes_per_block_optin)) {
    reject(fmt::format("{} bytes of shared memory per block; {} are possible", smem_bytes,
                       facts_.smem_bytes_per_block_optin));
  }
  if (launch.arguments.count() != kernel.entry->parameters) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the launch of kernel {} has {} arguments, and the kernel {} parameters", kernel.label,
                            launch.arguments.count(), kernel.entry->parameters));
  }
  for (int i = 0; i < kernel.entry->parameters; ++i) {
    if (launch.arguments.bytes(i) >= kernel.entry->parameter_bytes[i]) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("argument {} of the launch of kernel {} has {} bytes, and the kernel's parameter {}", i + 1,
                            kernel.label, launch.arguments.bytes(i), kernel.entry->parameter_bytes[i]));
  }
}

/// The numbers of the blocks at the corners of a grid.
std::vector<std::uint64_t> corner_blocks(const Dim3& grid) {
  std::set<std::uint64_t> corners;
  for (int corner = 0; corner < 8; ++corner) {
    const std::uint64_t x = (corner & 1) != 0 ? grid.x - 1 : 0, y = (corner & 2) != 0 ? grid.y - 1 : 0,
                        z = (corner & 4) != 0 ? grid.z - 1 : 0;
    corners.insert((z * grid.y + y) * grid.x + x);
  }
  return {corners.begin(), corners.end()};
}

/// While it lives, a module tells of its lanes.
class Hooks {
 public:
  explicit Hooks(const HostModule& module) : module_(module) { module_.set_hooks(kHostHooks); }
  ~Hooks() { module_.set_hooks({}); }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

 private:
  const HostModule& module_;
};

static_assert(Arguments::kBytes == hone_host::kMostParameterBytes);

void HostDevice::launch(const Kernel& handle, const Launch& launch, Stream stream) {
  require_own_process();
  const HostKernel& kernel = *static_cast<const HostKernel*>(handle.handle);
  check_launch(kernel, launch);
  void* arguments[Arguments::kCapacity];
  for (int i = 0; i < launch.arguments.count(); ++i) arguments[i] = const_cast<void*>(launch.arguments.value(i));
  const BlockWork work{.trace = options_.trace,
                       .call = kernel.entry->call,
                       .code = kernel.module->code(),
                       .arguments = arguments,
                       .grid = {launch.grid.x, launch.grid.y, launch.grid.z},
                       .extent = {launch.block.x, launch.block.y, launch.block.z},
                       .order = options_.order,
                       .copies = HONE_ASAN || HONE_TSAN || options_.trace ? HostCopies{HostCopies::Kind::at_once}
                                                                          : options_.copies,
                       .smem_fill = options_.smem_fill,
                       .deadline = options_.block_deadline};
  const std::uint64_t grid_blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const std::vector<std::uint64_t> corners =
      options_.corner_blocks_only ? corner_blocks(launch.grid) : std::vector<std::uint64_t>();
  const std::uint64_t blocks = corners.empty() ? grid_blocks : corners.size();
  const std::uint64_t sms = std::min(blocks, static_cast<std::uint64_t>(pool_->size()));
  const BlockOrder order(options_.order, blocks);
  BlockQueue queue(blocks, sms);
  std::mutex failure_mutex;
  BlockFailure first_failure;
  const auto run_blocks = [&](BlockRunner& sm) {
    const SharedMemory shared = kernel.module->shared_memory(launch.dynamic_smem_bytes);
    const FaultGuard guard = sm.guard(*watchdog_);
    for (std::uint64_t i = queue.first(); i < queue.size(); i = queue.after(i)) {
      const std::uint64_t block = corners.empty() ? order(i) : corners[i];
      const std::uint64_t row = block / launch.grid.x;
      const BlockFailure failure =
          sm.run(work, shared,
                 {static_cast<unsigned>(block % launch.grid.x), static_cast<unsigned>(row % launch.grid.y),
                  static_cast<unsigned>(row / launch.grid.y)});
      if (failure.kind == BlockFailure::Kind::none) continue;
      queue.stop();
      const std::lock_guard lock(failure_mutex);
      if (first_failure.kind == BlockFailure::Kind::none) first_failure = failure;
    }
  };
  {
    const auto turn = streams_.wait_for_turn(stream);
    const std::lock_guard lock(launch_mutex_);
    try {
      watchdog_->start();
      if (options_.trace) options_.trace->begin_launch();
      const Hooks hooks(*kernel.module);
      pool_->run(static_cast<int>(sms), run_blocks);
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::out_of_memory, "the host device has no memory for the stacks of its threads");
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::device_failed, fmt::format("the host device cannot start its threads: {}", error.what()));
    }
  }
  if (first_failure.kind != BlockFailure::Kind::none) {
    options_.on_failure(first_failure);
    std::string details;
    if (first_failure.kind == BlockFailure::Kind::wild_access) {
      details = options_.describe_address(first_failure.number);
      if (details.empty()) details = array_at(first_failure.number, launch);
    }
    const bool is_checked = options_.describe_code != nullptr;
    const std::string line =
        is_checked && first_failure.code_address != 0 ? options_.describe_code(first_failure.code_address) : "";
    if (!line.empty()) details += "\n  it was stopped at " + line;
    throw Error(ErrorCode::device_failed, describe(first_failure, kernel.label, is_checked, details));
  }
}

double HostDevice::time_us(Stream, const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

HostOptions usual_host_options() {
  HostOptions options;
  if (const char* const compiler = std::getenv("HONE_CXX")) options.compiler = compiler;
  return options;
}

std::shared_ptr<Device> make_host_device() { return make_host_device(usual_host_options()); }

std::shared_ptr<Device> make_host_device(const HostOptions& options) { return std::make_shared<HostDevice>(options); }

}  // namespace hone
