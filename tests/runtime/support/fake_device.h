// FakeDevice: a device whose kernels take the time, give the results and fail as a test says.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <hone/device.h>

namespace hone {

/// How the kernel of one policy behaves when it is used. Found by the unit's source: TotalFamily spells its policy
/// there.
struct FakeKernel {
  double us = 10;                ///< what a launch takes on the fake clock
  double graph_us = -1;          ///< the same in a replayed graph; negative: as `us`
  bool is_wrong = false;         ///< adds one to the result
  bool is_unsteady = false;      ///< gives another result every time
  std::string compile_error = {};
  std::string load_error = {};
  int fails_at_launch = 0;       ///< the launch that throws, from 1; 0: none
  bool computes = true;          ///< false: a unit of another family, whose arguments are not known
  bool loses_device = false;     ///< its launch throws, and so does everything after it
  int resident_blocks = 4;
  Resources resources = {.registers = 32};
};

/// Runs units of TotalFamily at once, on a clock that only launches advance. Memory is ordinary memory. Streams are
/// handles without work; they can be put into capture, during which allocating and timing throw as a GPU would (what is
/// launched meanwhile runs at once all the same, so that tests see its result; inside capture() it is recorded).
/// Thread-safe, except for the script, which must not change while anything runs.
class FakeDevice final : public Device {
 public:
  /// An invented GPU of 8 SMs with an L2 of 64 KiB.
  /// Its bandwidth is unknown: nothing is near a roofline, and no call so short that the host would set its pace.
  static DeviceFacts default_facts();
  static DeviceFacts facts_with_bandwidth();

  explicit FakeDevice(DeviceFacts facts = default_facts()) : facts_(std::move(facts)) {}
  ~FakeDevice() override;

  // --- the script ---
  std::function<FakeKernel(std::string_view source)> script = [](std::string_view) { return FakeKernel{}; };
  std::function<double(double us, double now_us)> drift = [](double us, double) { return us; };  ///< of the clock
  std::function<DeviceCondition(double now_us)> condition_at = [](double) { return DeviceCondition{}; };
  std::function<EnergyReading()> read_energy = [] { return EnergyReading{.missing = "it is invented"}; };
  double timing_overhead_us = 0;             ///< that the events around timed work add
  std::function<void()> on_compile = [] {};  ///< called in every compile(), without a lock
  std::string compiler = "fake-1";           ///< compiler_identity(); "" and compile() throws unsupported
  std::vector<std::string> symbols;          ///< Binary::entries of what it compiles, and must be of what it loads
  std::size_t memory_limit = SIZE_MAX;       ///< of one allocation
  int context_sms = 0;                       ///< usable_sms(); 0: all
  std::atomic<bool> has_room = true;         ///< false: cooperative launches are refused
  std::function<DeviceLimits()> measure_limits = [] { return DeviceLimits{}; };

  void begin_capture(Stream stream, std::uint64_t capture_id);
  void end_capture(Stream stream);

  // --- what happened ---
  int compiles() const { return compiles_; }
  int loads() const { return loads_; }
  int allocations() const { return allocations_; }
  int timings() const { return timings_; }
  int captures() const { return graphs_; }  ///< calls of capture()
  int holds() const { return holds_; }      ///< calls of hold()
  std::size_t live_allocations() const;
  int refusals() const { return refusals_; }  ///< of cooperative launches
  int frees_in_flight() const { return frees_in_flight_; }  ///< while a stream had work that nobody had waited for
  std::map<std::string, int> launches() const;  ///< of each unit, by its source
  double now_us() const;

  // --- Device ---
  DeviceLimits limits() override {
    if (!limits_) limits_ = measure_limits();
    return *limits_;
  }
  void set_limits(const DeviceLimits& limits) override { limits_ = limits; }
  std::string_view name() const override { return "fake"; }
  const DeviceFacts& facts() const override { return facts_; }
  std::string compiler_identity() const override { return compiler; }
  Binary compile(const Unit& unit) const override;
  std::size_t parallel_compilations() const override { return std::max(1u, std::thread::hardware_concurrency()); }
  std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) override;
  int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const override;
  int usable_sms() const override { return context_sms > 0 ? context_sms : facts_.sm_count; }
  void* allocate(std::size_t bytes) override;
  void deallocate(void* pointer) noexcept override;
  void copy_to_device(void* to, const void* from, std::size_t bytes, Stream) override;
  void copy_to_host(void* to, const void* from, std::size_t bytes, Stream) override;
  void copy_on_device(void* to, const void* from, std::size_t bytes, Stream) override;
  void fill_bytes(void* to, int byte_value, std::size_t bytes, Stream) override;
  MemoryKind memory_kind(const void* pointer) const override;
  Stream create_stream() override;
  void destroy_stream(Stream stream) noexcept override;
  void synchronize(Stream stream) override;
  StreamState stream_state(Stream stream) const override;
  void launch(const Kernel& kernel, const Launch& launch, Stream stream) override;
  std::unique_ptr<CapturedWork> capture(Stream stream, const std::function<void()>& work) override;
  void replay(const CapturedWork& work, Stream stream) override;
  std::unique_ptr<StreamHold> hold(Stream stream) override;
  double time_us(Stream stream, const std::function<void()>& work) override;
  DeviceCondition condition() const override { return condition_at(now_us()); }
  EnergyReading energy() const override { return read_energy(); }

 private:
  struct Recorded;
  void run(const Kernel& kernel, const Launch& launch, bool in_graph);
  void require_no_capture(const char* what) const;
  void require_found() const;
  void enqueue_on(Stream stream);

  DeviceFacts facts_;
  std::optional<DeviceLimits> limits_;
  mutable std::atomic<int> compiles_ = 0;
  std::atomic<int> loads_ = 0;
  std::atomic<int> allocations_ = 0;
  std::atomic<int> timings_ = 0;
  std::atomic<int> graphs_ = 0;
  std::atomic<int> holds_ = 0;
  std::atomic<int> live_holds_ = 0;
  std::atomic<int> refusals_ = 0;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> memory_;  ///< address → bytes
  std::map<std::string, int> launches_;
  std::map<Stream, std::uint64_t> captures_;
  std::map<Stream, Recorded*> recordings_;  ///< of capture(), while its work runs
  std::set<Stream> streams_;
  std::set<Stream> in_flight_;  ///< with work that nobody has waited for
  std::atomic<int> frees_in_flight_ = 0;
  std::uintptr_t next_stream_ = 0x100;
  double now_us_ = 0;
  std::atomic<bool> is_lost_ = false;
};

}  // namespace hone
