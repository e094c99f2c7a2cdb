#include "tests/runtime/support/fake_device.h"

#include <cstdlib>
#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {
namespace {

constexpr std::size_t kPoisonEvery = 64 * 1024, kPoisonBytes = 256;

constexpr std::string_view kFormat = "fake";

/// A loaded kernel: Kernel::handle points to one.
struct Loaded {
  std::string source;
};

class FakeModule final : public Module {
 public:
  FakeModule(Loaded loaded, const Resources& resources, std::size_t entries) : loaded_(std::move(loaded)) {
    kernels_.assign(entries, {.handle = &loaded_, .resources = resources});
  }
  const Kernel& kernel(int entry) const override { return kernels_.at(static_cast<std::size_t>(entry)); }

 private:
  Loaded loaded_;
  std::vector<Kernel> kernels_;
};

template <class T>
T argument(const Launch& launch, int index) {
  T value;
  std::memcpy(&value, launch.arguments.value(index), sizeof(T));
  return value;
}

/// The first kernel adds up integers; the second one copies the total on from the workspace.
std::int64_t result_of(const Launch& launch) {
  std::int64_t total = 0;
  if (launch.entry == 1) {
    std::memcpy(&total, argument<const void*>(launch, 0), sizeof(total));
    return total;
  }
  const auto* in = argument<const std::int32_t*>(launch, 0);
  const auto n = argument<std::int64_t>(launch, 1);
  for (std::int64_t i = 0; i < n; ++i) total += in[i];
  return total;
}

}  // namespace

DeviceFacts FakeDevice::default_facts() {
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.name = "Fake GPU";
  facts.architecture = "fake_1";
  facts.driver = "1.0";
  facts.compute_capability = 90;
  facts.sm_count = 8;
  facts.smem_bytes_per_sm = 100 * 1024;
  facts.l2_bytes = 64 * 1024;
  facts.memory_bytes = std::int64_t{1} << 30;
  return facts;
}

DeviceFacts FakeDevice::facts_with_bandwidth() {
  DeviceFacts facts = default_facts();
  facts.memory_clock_khz = 1000000;
  facts.memory_bus_bits = 256;
  return facts;
}

FakeDevice::~FakeDevice() {
  for (const auto& [address, bytes] : memory_) std::free(reinterpret_cast<void*>(address));
}

void FakeDevice::begin_capture(Stream stream, std::uint64_t capture_id) {
  const std::scoped_lock lock(mutex_);
  captures_[stream] = capture_id;
}

void FakeDevice::end_capture(Stream stream) {
  const std::scoped_lock lock(mutex_);
  captures_.erase(stream);
}

std::size_t FakeDevice::live_allocations() const {
  const std::scoped_lock lock(mutex_);
  return memory_.size();
}

std::map<std::string, int> FakeDevice::launches() const {
  const std::scoped_lock lock(mutex_);
  return launches_;
}

double FakeDevice::now_us() const {
  const std::scoped_lock lock(mutex_);
  return now_us_;
}

void FakeDevice::require_no_capture(const char* what) const {
  const std::scoped_lock lock(mutex_);
  if (!captures_.empty()) throw Error(ErrorCode::device_failed, fmt::format("{} during capture", what));
}

Binary FakeDevice::compile(const Unit& unit) const {
  ++compiles_;
  on_compile();
  if (compiler.empty()) throw Error(ErrorCode::unsupported, "there is no compiler");
  const FakeKernel behaviour = script(unit.source);
  if (!behaviour.compile_error.empty()) throw Error(ErrorCode::compile_failed, behaviour.compile_error);
  const auto bytes = std::as_bytes(std::span(unit.source));
  return {.format = std::string(kFormat),
          .architecture = facts_.architecture,
          .code = {bytes.begin(), bytes.end()},
          .entries = symbols};
}

std::unique_ptr<Module> FakeDevice::load(const Binary& binary, const std::vector<std::string>& entries) {
  if (binary.format != kFormat) throw Error(ErrorCode::device_failed, "not a binary of this device");
  if (binary.entries != symbols) throw Error(ErrorCode::device_failed, "its kernels have other symbols");
  std::string source(reinterpret_cast<const char*>(binary.code.data()), binary.code.size());
  const FakeKernel behaviour = script(source);
  if (!behaviour.load_error.empty()) throw Error(ErrorCode::device_failed, behaviour.load_error);
  ++loads_;
  return std::make_unique<FakeModule>(Loaded{std::move(source)}, behaviour.resources, entries.size());
}

int FakeDevice::resident_blocks(const Kernel& kernel, int, std::size_t) const {
  return script(static_cast<const Loaded*>(kernel.handle)->source).resident_blocks;
}

void* FakeDevice::allocate(std::size_t bytes) {
  require_no_capture("allocating");
  ++allocations_;
  if (bytes > memory_limit) throw Error(ErrorCode::out_of_memory, fmt::format("{} bytes are too many", bytes));
  void* pointer = nullptr;
  if (posix_memalign(&pointer, 256, std::max<std::size_t>(bytes, 1)) != 0)
    throw Error(ErrorCode::out_of_memory, "no memory");
  // Uninitialised memory is not zero; here and there, since a test of every byte would take long.
  for (std::size_t offset = 0; offset < bytes; offset += kPoisonEvery)
    std::memset(static_cast<std::byte*>(pointer) + offset, 0xa5, std::min(kPoisonBytes, bytes - offset));
  const std::scoped_lock lock(mutex_);
  memory_[reinterpret_cast<std::uintptr_t>(pointer)] = std::max<std::size_t>(bytes, 1);
  return pointer;
}

void FakeDevice::deallocate(void* pointer) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    memory_.erase(reinterpret_cast<std::uintptr_t>(pointer));
    if (!in_flight_.empty()) ++frees_in_flight_;
  }
  std::free(pointer);
}

void FakeDevice::enqueue_on(Stream stream) {
  const std::scoped_lock lock(mutex_);
  in_flight_.insert(stream);
}

void FakeDevice::copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  enqueue_on(stream);
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void FakeDevice::copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  enqueue_on(stream);
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void FakeDevice::copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  enqueue_on(stream);
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void FakeDevice::fill_bytes(void* to, int byte_value, std::size_t bytes, Stream stream) {
  require_found();
  enqueue_on(stream);
  if (bytes > 0) std::memset(to, byte_value, bytes);
}

MemoryKind FakeDevice::memory_kind(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::scoped_lock lock(mutex_);
  auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return MemoryKind::host;
  --after;
  return address - after->first < after->second ? MemoryKind::device : MemoryKind::host;
}

Stream FakeDevice::create_stream() {
  const std::scoped_lock lock(mutex_);
  next_stream_ += 0x100;
  return *streams_.insert(reinterpret_cast<Stream>(next_stream_)).first;
}

void FakeDevice::destroy_stream(Stream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  streams_.erase(stream);
  in_flight_.erase(stream);
}

void FakeDevice::synchronize(Stream stream) {
  require_found();
  const std::scoped_lock lock(mutex_);
  if (captures_.contains(stream)) throw Error(ErrorCode::device_failed, "waiting for a stream under capture");
  in_flight_.erase(stream);
}

StreamState FakeDevice::stream_state(Stream stream) const {
  const std::scoped_lock lock(mutex_);
  const auto capture = captures_.find(stream);
  return {.id = reinterpret_cast<std::uintptr_t>(stream),
          .capturing = capture != captures_.end(),
          .capture_id = capture == captures_.end() ? 0 : capture->second};
}

struct FakeDevice::Recorded final : CapturedWork {
  std::vector<std::pair<Kernel, Launch>> launches;
};

void FakeDevice::launch(const Kernel& kernel, const Launch& launch, Stream stream) {
  if (launch.cooperative && !has_room) {
    ++refusals_;
    throw NotResident(fmt::format("no room for {} blocks at once", launch.grid.x));
  }
  {
    const std::scoped_lock lock(mutex_);
    if (const auto recording = recordings_.find(stream); recording != recordings_.end()) {
      recording->second->launches.emplace_back(kernel, launch);
      return;
    }
  }
  enqueue_on(stream);
  run(kernel, launch, false);
}

std::unique_ptr<CapturedWork> FakeDevice::capture(Stream stream, const std::function<void()>& work) {
  const auto id = static_cast<std::uint64_t>(++graphs_);
  auto recorded = std::make_unique<Recorded>();
  begin_capture(stream, id);
  {
    const std::scoped_lock lock(mutex_);
    recordings_[stream] = recorded.get();
  }
  const auto end = [&] {
    end_capture(stream);
    const std::scoped_lock lock(mutex_);
    recordings_.erase(stream);
  };
  try {
    work();
  } catch (...) {
    end();
    throw;
  }
  end();
  return recorded;
}

void FakeDevice::replay(const CapturedWork& work, Stream stream) {
  enqueue_on(stream);
  for (const auto& [kernel, launch] : static_cast<const Recorded&>(work).launches) run(kernel, launch, true);
}

void FakeDevice::run(const Kernel& kernel, const Launch& launch, bool in_graph) {
  const std::string& source = static_cast<const Loaded*>(kernel.handle)->source;
  const FakeKernel behaviour = script(source);
  int count = 0;
  {
    const std::scoped_lock lock(mutex_);
    count = ++launches_[source];
    now_us_ += drift(in_graph && behaviour.graph_us >= 0 ? behaviour.graph_us : behaviour.us, now_us_);
  }
  if (behaviour.loses_device) is_lost_ = true;
  require_found();
  if (count == behaviour.fails_at_launch) throw Error(ErrorCode::device_failed, "the launch failed");
  if (!behaviour.computes) return;
  std::int64_t result = result_of(launch);
  if (behaviour.is_wrong) ++result;
  if (behaviour.is_unsteady) result += count;
  std::memcpy(argument<void*>(launch, 2), &result, sizeof(result));
}

void FakeDevice::require_found() const {
  if (is_lost_) throw Error(ErrorCode::device_failed, "an illegal memory access was encountered");
}

std::unique_ptr<StreamHold> FakeDevice::hold(Stream) {
  struct Hold final : StreamHold {
    explicit Hold(std::atomic<int>& live) : live_(live) { ++live_; }
    ~Hold() override { --live_; }
    std::atomic<int>& live_;
  };
  ++holds_;
  return std::make_unique<Hold>(live_holds_);
}

double FakeDevice::time_us(Stream stream, const std::function<void()>& work) {
  ++timings_;
  synchronize(stream);
  const double start = now_us();
  work();
  if (live_holds_ > 0) throw Error(ErrorCode::device_failed, "waiting for a stream that is held");
  synchronize(stream);
  return now_us() - start + timing_overhead_us;
}

}  // namespace hone
