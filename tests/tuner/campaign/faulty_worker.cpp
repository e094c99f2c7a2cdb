// A worker of hone tune whose device does what HONE_TEST_FAULT says: "KIND THREADS TIMES FOLDER", where KIND happens at
// launches of THREADS threads a block (0: of any number), TIMES times at most; FOLDER remembers how often that was.
//
//   crash   the process dies of a signal
//   hang    the launch never returns
//   lose    this launch and everything after it fails, until the device is opened again
//   vanish  the process dies, and the device cannot be opened again
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include <hone/device.h>
#include <hone/error.h>

#include "tuner/campaign/worker.h"

namespace hone::tuner {
namespace {

struct Fault {
  std::string kind;
  unsigned threads = 0;
  int times = 0;
  std::filesystem::path folder;

  static Fault from_environment() {
    Fault fault;
    const char* text = std::getenv("HONE_TEST_FAULT");
    std::istringstream in(text ? text : "");
    in >> fault.kind >> fault.threads >> fault.times >> fault.folder;
    return fault;
  }

  int happened() const {
    int count = 0;
    while (std::filesystem::exists(folder / std::to_string(count))) ++count;
    return count;
  }

  /// Whether it is to happen now; if so, it is remembered.
  bool strikes(const Launch& launch) const {
    if (threads != 0 && launch.block.x != threads) return false;
    const int before = happened();
    if (before >= times) return false;
    std::ofstream(folder / std::to_string(before)) << getpid();
    return true;
  }
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::shared_ptr<Device> inner, Fault fault) : inner_(std::move(inner)), fault_(std::move(fault)) {}

  std::string_view name() const override { return inner_->name(); }
  const DeviceFacts& facts() const override { return inner_->facts(); }
  std::string compiler_identity() const override { return inner_->compiler_identity(); }
  Binary compile(const Unit& unit) const override { return inner_->compile(unit); }
  std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) override {
    return inner_->load(binary, entries);
  }
  int resident_blocks(const Kernel& kernel, int threads, std::size_t smem) const override {
    return inner_->resident_blocks(kernel, threads, smem);
  }
  void* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void deallocate(void* pointer) noexcept override { inner_->deallocate(pointer); }
  void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    inner_->copy_to_device(to, from, bytes, stream);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) override {
    inner_->copy_to_host(to, from, bytes, stream);
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    inner_->copy_on_device(to, from, bytes, stream);
  }
  void fill_bytes(void* to, int value, std::size_t bytes, Stream stream) override {
    require_found();
    inner_->fill_bytes(to, value, bytes, stream);
  }
  MemoryKind memory_kind(const void* pointer) const override { return inner_->memory_kind(pointer); }
  Stream create_stream() override { return inner_->create_stream(); }
  void destroy_stream(Stream stream) noexcept override { inner_->destroy_stream(stream); }
  void synchronize(Stream stream) override { inner_->synchronize(stream); }
  StreamState stream_state(Stream stream) const override { return inner_->stream_state(stream); }
  void launch(const Kernel& kernel, const Launch& launch, Stream stream) override {
    require_found();
    if (fault_.strikes(launch)) strike();
    inner_->launch(kernel, launch, stream);
  }
  std::unique_ptr<CapturedWork> capture(Stream stream, const std::function<void()>& work) override {
    return inner_->capture(stream, work);
  }
  void replay(const CapturedWork& work, Stream stream) override { inner_->replay(work, stream); }
  double time_us(Stream stream, const std::function<void()>& work) override { return inner_->time_us(stream, work); }

 private:
  void strike() {
    if (fault_.kind == "crash" || fault_.kind == "vanish") {
      signal(SIGSEGV, SIG_DFL);
      kill(getpid(), fault_.kind == "crash" ? SIGSEGV : SIGKILL);
    }
    while (fault_.kind != "lose") pause();
    is_lost_ = true;
    require_found();
  }

  void require_found() const {
    if (is_lost_) throw Error(ErrorCode::device_failed, "an illegal memory access was encountered");
  }

  std::shared_ptr<Device> inner_;
  Fault fault_;
  bool is_lost_ = false;
};

}  // namespace
}  // namespace hone::tuner

int main() {
  using namespace hone;
  const tuner::Fault fault = tuner::Fault::from_environment();
  return tuner::run_worker([&](const std::string& name) -> std::shared_ptr<Device> {
    if (fault.kind == "vanish" && fault.happened() > 0)
      throw Error(ErrorCode::not_found, "there is no device '" + name + "' any more");
    return std::make_shared<tuner::FaultyDevice>(Device::open(name), fault);
  });
}
