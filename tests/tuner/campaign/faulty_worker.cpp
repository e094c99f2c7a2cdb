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

#include <hone/error.h>
#include <hone/sdk/forwarding_device.h>

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

  /// Returns true if it is to happen now; that is remembered.
  bool strikes(const Launch& launch) const {
    if (threads != 0 && launch.block.x != threads) return false;
    const int before = happened();
    if (before >= times) return false;
    std::ofstream(folder / std::to_string(before)) << getpid();
    return true;
  }
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(std::shared_ptr<Device> inner, Fault fault)
      : ForwardingDevice(std::move(inner)), fault_(std::move(fault)) {}

  void fill_bytes(void* to, int value, std::size_t bytes, Stream stream) override {
    require_found();
    ForwardingDevice::fill_bytes(to, value, bytes, stream);
  }
  void launch(const Kernel& kernel, const Launch& launch, Stream stream) override {
    require_found();
    if (fault_.strikes(launch)) strike();
    ForwardingDevice::launch(kernel, launch, stream);
  }

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
