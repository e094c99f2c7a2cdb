// Device: something that compiles, launches and times kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device_facts.h>
#include <hone/kernel.h>
#include <hone/stream.h>

namespace hone {

/// What a stream is doing, as far as a launch must know.
struct StreamState {
  /// The same for every handle of one stream, and another stream's only when all work of this one is done; the
  /// per-thread default stream is another stream in each thread. While capturing: tells the streams of one graph apart.
  std::uint64_t id = 0;
  bool capturing = false;
  std::uint64_t capture_id = 0;  ///< identifies the graph under construction while capturing
};

/// What stands in the way of a fair timing right now, as far as the device's monitor tells.
struct DeviceCondition {
  bool is_throttled = false;  ///< the clock is held down: heat, a power cap, a power brake
  bool is_shared = false;     ///< other processes run kernels
  std::string seen = {};      ///< what was seen of it, for people: "process 4711 uses 60 % of the SMs"; "" if nothing
};

/// Where a pointer points to.
enum class MemoryKind { device, host, unknown };

/// Launches that were captured once, to be run again and again: a CUDA graph. Made by Device::capture; must not outlive
/// the device, nor the code and memory that its launches use, nor be destroyed while a replay is pending.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  CapturedWork() = default;
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;
};

/// Keeps a stream waiting as long as it exists (Device::hold()). May be destroyed by any thread.
class StreamHold {
 public:
  virtual ~StreamHold() = default;
  StreamHold() = default;
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
};

/// One device. All methods are safe to call from several threads at once. Errors are hone::Error: device_failed
/// unless a method says otherwise; from any method device_lost, when nothing runs on the device any more. A child that
/// was forked cannot use a device that its parent has opened: CUDA reports a failure, the host device device_lost.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Opens "cuda:0", "cuda:1", … or "host"; "auto" is the first CUDA device, or else the host.
  /// Throws not_found (with the devices that exist) or unsupported (no driver, driver older than the toolkit).
  static std::shared_ptr<Device> open(std::string_view name);

  virtual std::string_view name() const = 0;
  virtual const DeviceFacts& facts() const = 0;

  /// Measured when first asked, which takes tens of milliseconds, a compiler, and up to 1 GiB of memory meanwhile; zeros
  /// on devices that do not measure, and where measuring fails. Only tuning asks. Thread-safe; not while a stream of the
  /// calling thread is being captured. Throws device_lost.
  virtual DeviceLimits limits() { return {}; }

  // --- code ---

  /// Identifies the compiler without loading or running it; "" when there is none (stored binaries still load).
  virtual std::string compiler_identity() const = 0;

  /// Compiles for this device's architecture. Throws compile_failed with options and log, or unsupported when
  /// there is no compiler.
  virtual Binary compile(const Unit& unit) const = 0;

  /// How many calls of compile() may go on at once without each taking longer, cores permitting; at least 1.
  virtual std::size_t parallel_compilations() const = 0;

  /// Loads a binary; `entries` are the kernels to look up in it. Throws device_failed when the binary does not
  /// fit the device or lacks an entry.
  virtual std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) = 0;

  /// Blocks of `kernel` that fit one SM at once (cudaOccupancyMaxActiveBlocksPerMultiprocessor); 0: none fits.
  virtual int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const = 0;

  // --- memory ---

  /// Device memory of at least `bytes` bytes, aligned to 256, uninitialised, usable at once in every stream.
  /// Throws out_of_memory. Must not be called while any stream of the calling thread is being captured.
  virtual void* allocate(std::size_t bytes) = 0;

  /// Does not wait for other streams: nothing that uses the memory may be in flight.
  virtual void deallocate(void* pointer) noexcept = 0;

  /// Bytes that allocate() could give out now, as far as the driver or the operating system tells: other programs take
  /// and free memory meanwhile. 0: not known.
  virtual std::int64_t free_memory_bytes() const { return facts().memory_bytes; }

  /// Stream-ordered copies and fills; host memory must stay valid until the stream has passed the call.
  virtual void copy_to_device(void* to, const void* from_host, std::size_t bytes, Stream stream) = 0;
  virtual void copy_to_host(void* to_host, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void fill_bytes(void* to, int byte_value, std::size_t bytes, Stream stream) = 0;

  /// Asks the driver where a pointer points to; costs about a microsecond.
  virtual MemoryKind memory_kind(const void* pointer) const = 0;

  // --- running ---

  /// A stream that does not synchronise with the default stream. One that was destroyed when its work was done may
  /// come back.
  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;

  /// Waits until all work in `stream` is done; reports asynchronous failures of earlier launches.
  virtual void synchronize(Stream stream) = 0;

  virtual StreamState stream_state(Stream stream) const = 0;

  /// Enqueues one launch; neither waits nor allocates (the host device has finished when it returns).
  virtual void launch(const Kernel& kernel, const Launch& launch, Stream stream) = 0;

  /// Captures what `work` enqueues on `stream`, without running it, and gets it ready for replay(). Allocates; the
  /// stream must not be capturing already. A device without graphs (the host) calls a copy of `work` in every replay
  /// instead, so whatever it refers to must live as long as the result. Throws what `work` throws.
  virtual std::unique_ptr<CapturedWork> capture(Stream stream, const std::function<void()>& work) = 0;

  /// Enqueues captured work of this device; does not wait (the host device has finished when it returns).
  virtual void replay(const CapturedWork& work, Stream stream) = 0;

  /// Lets what is enqueued on `stream` from now on wait until the result is destroyed, or for 10 ms: the device then
  /// finds all of it ready, and what the host takes to enqueue it does not show in its timing. nullptr where a device
  /// has no such means. Must not be called while the stream is being captured.
  virtual std::unique_ptr<StreamHold> hold([[maybe_unused]] Stream stream) { return nullptr; }

  /// Runs `work`, which enqueues on `stream`, and returns the device time it took in microseconds. Waits for it.
  virtual double time_us(Stream stream, const std::function<void()>& work) = 0;

  /// Asks the monitor, where there is one (NVML for CUDA devices); nothing is wrong where there is none.
  virtual DeviceCondition condition() const { return {}; }

 protected:
  Device() = default;
};

/// Names that Device::open accepts on this machine, CUDA devices first; "host" is always among them.
std::vector<std::string> device_names();

/// Why no CUDA device is listed ("no CUDA driver is installed", …); "" when one is.
std::string cuda_unavailable_reason();

/// Device memory with an owner: move-only, freed on destruction. The device is kept alive.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws invalid_argument without a device, and what Device::allocate() throws.
  DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes);
  DeviceBuffer(std::nullptr_t, std::size_t) = delete;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  void* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hone
