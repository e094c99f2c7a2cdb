#include "runtime/trace/trace_range.h"

#include <sys/auxv.h>

#include <mutex>

#include <nvtx3/nvToolsExt.h>

namespace hone {

namespace trace {

void push(const std::string& message) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = message.c_str();
  nvtxDomainRangePushEx(static_cast<nvtxDomainHandle_t>(domain.load(std::memory_order_relaxed)), &attributes);
}

void pop() noexcept { nvtxDomainRangePop(static_cast<nvtxDomainHandle_t>(domain.load(std::memory_order_relaxed))); }

}  // namespace trace

void start_tracing() {
  static std::once_flag once;
  // NVTX takes the path of the tool's library from the environment.
  if (getauxval(AT_SECURE) != 0) return;
  std::call_once(once, [] { trace::domain.store(nvtxDomainCreateA("hone"), std::memory_order_relaxed); });
}

}  // namespace hone
