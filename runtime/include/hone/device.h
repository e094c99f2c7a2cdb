// Device: something that compiles, launches and times kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hone/device_facts.h>
#include <hone/error.h>
#include <hone/kernel.h>
#include <hone/stream.h>

namespace hone {

/// The state of a stream, as far as a launch depends on it.
struct StreamState {
  /// Identifies the stream: every handle of one stream has the same id. A later stream may get it only after all work
  /// of this one is done. The per-thread default stream has another id in each thread. While capturing, the id tells
  /// the streams of one graph apart.
  std::uint64_t id = 0;
  bool capturing = false;
  std::uint64_t capture_id = 0;  ///< while capturing: identifies the graph under construction
};

/// Thrown by Device::launch() for a cooperative launch of more blocks than can be resident at once where it was
/// launched: in a part of the device that another process shares (MPS), or that a green context has. Nothing was
/// enqueued, and other launches work. The code is device_failed.
class NotResident final : public Error {
 public:
  explicit NotResident(const std::string& message) : Error(ErrorCode::device_failed, message) {}
};

/// Reasons why a timing taken right now would not be fair, as far as the device's monitor reports them.
struct DeviceCondition {
  bool is_throttled = false;  ///< the clock is held down: heat, a power cap, a power brake
  bool is_shared = false;     ///< other processes run kernels
  std::string seen = {};      ///< the evidence, for people: "process 4711 uses 60 % of the SMs", or ""
};

/// The energy counter of a device, as its monitor reports it.
struct EnergyReading {
  double joules = 0;         ///< of the whole device, idle power included, since its driver was loaded
  double power_limit_w = 0;  ///< that the device enforces; 0: not known
  std::string missing = {};  ///< why there is no counter: what was looked for, and what was found; "" if there is one
};

/// The memory that a pointer points into; `peer`: another device's.
enum class MemoryKind { device, host, peer, unknown };

/// Bytes in device memory that should be the bytes `expected`, over and over from their beginning.
struct RepeatedBytes {
  const std::byte* found = nullptr;  ///< in device memory
  std::size_t bytes = 0;
  std::span<const std::byte> expected = {};         ///< in host memory; not empty unless `bytes` is 0
  const std::byte* expected_on_device = nullptr;  ///< the same bytes in device memory
};

/// Launches that were captured once and can be replayed: a CUDA graph, made by Device::capture(). It must not outlive
/// the device, nor the code and memory that its launches use, and must not be destroyed while a replay is pending.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  CapturedWork() = default;
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;
};

/// Makes a stream wait for as long as this object exists, see Device::hold(). Any thread may destroy it.
class StreamHold {
 public:
  virtual ~StreamHold() = default;
  StreamHold() = default;
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
};

/// One device. Thread-safe: any method may be called from several threads at once. Errors are hone::Error with the code
/// device_failed, unless a method names another. Any method may throw device_lost once nothing runs on the device any
/// more. A forked child cannot use a device that its parent opened: CUDA reports a failure, the host device
/// device_lost.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Opens "cuda:0", "cuda:1", … or "host"; "auto" opens the first CUDA device, or the host where there is none.
  /// Throws not_found (with the devices that exist) or unsupported (no driver, driver older than the toolkit).
  static std::shared_ptr<Device> open(std::string_view name);

  virtual std::string_view name() const = 0;
  virtual const DeviceFacts& facts() const = 0;

  /// Lower bounds for the time of a call. The first use measures them: that takes tens of milliseconds, a compiler and,
  /// for that time, up to 1 GiB of device memory. All zero on devices that do not measure, and where measuring fails.
  /// Only tuning asks for them. Must not be called while a stream of the calling thread is being captured.
  virtual DeviceLimits limits() { return {}; }

  /// limits() returns these from now on, and measures nothing: another process of this machine has. By default nothing
  /// happens.
  virtual void set_limits([[maybe_unused]] const DeviceLimits& limits) {}

  // --- code ---

  /// Identifies the compiler without loading or running it; "" if there is none (stored binaries load all the same).
  virtual std::string compiler_identity() const = 0;

  /// Compiles for this device's architecture. Throws compile_failed with options and log, or unsupported when
  /// there is no compiler.
  virtual Binary compile(const Unit& unit) const = 0;

  /// The number of compile() calls that run in parallel without slowing each other down, given the cores; at least 1.
  virtual std::size_t parallel_compilations() const = 0;

  /// Loads a binary and looks up the kernels `entries` in it. The caller owns the module. Throws device_failed if the
  /// binary does not fit the device or lacks an entry.
  virtual std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) = 0;

  /// The number of blocks of `kernel` that are resident on one SM at once; 0 if none fits. On a GPU this is
  /// cudaOccupancyMaxActiveBlocksPerMultiprocessor().
  virtual int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const = 0;

  /// The number of clusters of so many blocks that are resident at once, of a `kernel` of which an SM has resident
  /// blocks. On a GPU this is cudaOccupancyMaxActiveClusters(), which knows that a cluster lies within a GPC.
  virtual std::int64_t resident_clusters(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes,
                                         int cluster_blocks) const {
    const std::int64_t of_sm = resident_blocks(kernel, block_threads, dynamic_smem_bytes);
    return of_sm * facts().sm_count / cluster_blocks;
  }

  /// The SMs on which work of this process runs: fewer than facts().sm_count where its context has a part of the device
  /// alone (MPS).
  virtual int usable_sms() const { return facts().sm_count; }

  // --- memory ---

  /// Allocates at least `bytes` bytes of device memory: aligned to 256 bytes, uninitialised, and usable in every stream
  /// at once. The caller frees it with deallocate(). Throws out_of_memory. Must not be called while a stream of the
  /// calling thread is being captured.
  virtual void* allocate(std::size_t bytes) = 0;

  /// Frees memory of allocate(). Waits for no stream: nothing that uses the memory may be in flight.
  virtual void deallocate(void* pointer) noexcept = 0;

  /// The number of bytes that allocate() could provide now, as the driver or the operating system reports it; other
  /// programs may change it at any time. 0: not known.
  virtual std::int64_t free_memory_bytes() const { return facts().memory_bytes; }

  /// Copies and fills `bytes` bytes in stream order. Host memory must stay valid until the stream has executed the
  /// call.
  virtual void copy_to_device(void* to, const void* from_host, std::size_t bytes, Stream stream) = 0;
  virtual void copy_to_host(void* to_host, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void fill_bytes(void* to, int byte_value, std::size_t bytes, Stream stream) = 0;

  /// Where each run first differs from what it should be; its RepeatedBytes::bytes if it does not. Waits for the
  /// stream. By default, the bytes are copied to the host.
  virtual std::vector<std::size_t> first_differences(std::span<const RepeatedBytes> runs, Stream stream);

  /// Asks the driver which memory a pointer points into. This costs about a microsecond.
  virtual MemoryKind memory_kind(const void* pointer) const = 0;

  /// The device whose memory a pointer points into, for messages: "NVIDIA H100 80GB HBM3 (cuda:1)". By default this
  /// one.
  virtual std::string memory_owner(const void* pointer) const;

  // --- running ---

  /// Creates a stream that does not synchronise with the default stream; destroy_stream() returns it. A stream that was
  /// idle when it was destroyed may be handed out again.
  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;

  /// Waits until all work in `stream` is done, and throws the asynchronous failures of earlier launches.
  virtual void synchronize(Stream stream) = 0;

  virtual StreamState stream_state(Stream stream) const = 0;

  /// Enqueues one launch. Neither waits nor allocates. (The host device has executed it on return.) Throws NotResident
  /// for a cooperative launch that is refused.
  virtual void launch(const Kernel& kernel, const Launch& launch, Stream stream) = 0;

  /// Captures what `work` enqueues on `stream` without running it, and prepares it for replay(). Allocates. The stream
  /// must not be capturing already. A device without graphs (the host) calls a copy of `work` in every replay instead,
  /// so everything that `work` refers to must live as long as the result. Throws what `work` throws.
  virtual std::unique_ptr<CapturedWork> capture(Stream stream, const std::function<void()>& work) = 0;

  /// Enqueues work that this device captured. Does not wait. (The host device has executed it on return.)
  virtual void replay(const CapturedWork& work, Stream stream) = 0;

  /// Holds back everything that is enqueued on `stream` from now on until the result is destroyed, but for 10 ms at
  /// most. The device then finds a whole batch enqueued, so that the host's enqueue time does not show in the batch's
  /// timing. Returns nullptr on devices that cannot do this. Must not be called while the stream is being captured.
  virtual std::unique_ptr<StreamHold> hold([[maybe_unused]] Stream stream) { return nullptr; }

  /// Runs `work`, which enqueues on `stream`, waits for it, and returns its device time in microseconds.
  virtual double time_us(Stream stream, const std::function<void()>& work) = 0;

  /// Asks the device's monitor (NVML for CUDA devices). Without a monitor, nothing is reported.
  virtual DeviceCondition condition() const { return {}; }

  /// Asks the device's monitor for its energy counter, which moves every 20 to 100 ms on a GPU.
  virtual EnergyReading energy() const { return {.missing = "it has no energy counter"}; }

 protected:
  Device() = default;
};

/// Device::first_differences() of one run whose bytes the host can read at `found`.
std::size_t first_difference(const std::byte* found, std::size_t bytes, std::span<const std::byte> expected);

/// Throws Error(unsupported), with what was looked for and what to do, where the device has no energy counter.
void require_energy_counter(const Device& device);

/// The names that Device::open() accepts on this machine, CUDA devices first and "host" last.
std::vector<std::string> device_names();

/// The name of this machine's CPU, as its operating system calls it.
std::string cpu_name();

/// The reason why device_names() lists no CUDA device ("no CUDA driver is installed", …); "" if it lists one.
std::string cuda_unavailable_reason();

/// Owns device memory: move-only, and freed on destruction. Keeps its device alive.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws invalid_argument without a device, and what Device::allocate() throws.
  DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes);
  DeviceBuffer(std::nullptr_t, std::size_t) = delete;

  /// Allocates and copies `values` there; waits for the copy. A std::vector<bool> is no array of bool.
  template <class T>
    requires(!std::is_same_v<T, bool>)
  DeviceBuffer(const std::shared_ptr<Device>& device, const std::vector<T>& values)
      : DeviceBuffer(device, values.size() * sizeof(T)) {
    static_assert(std::is_trivially_copyable_v<T>);
    copy_from(values.data());
  }

  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  void* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }

  /// The memory as elements of type T. The buffer keeps its ownership.
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

  /// A copy of the memory as elements of type T, after all that was enqueued on `stream`, which is waited for.
  template <class T>
  std::vector<T> to_host(Stream stream = nullptr) const {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
    std::vector<T> values(bytes_ / sizeof(T));
    copy_to(values.data(), values.size() * sizeof(T), stream);
    return values;
  }

 private:
  void copy_from(const void* values) const;
  void copy_to(void* values, std::size_t bytes, Stream stream) const;

  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hone
