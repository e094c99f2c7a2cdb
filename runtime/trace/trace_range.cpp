#include "runtime/trace/trace_range.h"

#include <sys/auxv.h>

#include <mutex>

#include <nvtx3/nvToolsExt.h>

namespace hone {

namespace {

nvtxDomainHandle_t domain = nullptr;

void push(const std::string& message) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = message.c_str();
  nvtxDomainRangePushEx(domain, &attributes);
}

void pop() noexcept { nvtxDomainRangePop(domain); }

constexpr trace::Listener kNvtx{push, pop};

}  // namespace

void start_tracing() {
  static std::once_flag once;
  // NVTX takes the path of the tool's library from the environment.
  if (getauxval(AT_SECURE) != 0) return;
  std::call_once(once, [] {
    if (trace::listener.load(std::memory_order_relaxed) != nullptr) return;
    domain = nvtxDomainCreateA("hone");
    if (domain != nullptr) trace::listener.store(&kNvtx, std::memory_order_release);
  });
}

}  // namespace hone
