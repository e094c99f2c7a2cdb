// A tool that NVTX loads (NVTX_INJECTION64_PATH): records the ranges of all threads as text.
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <mutex>
#include <string>

#include "tests/runtime/trace/nvtx_recorder.h"

namespace {

std::mutex mutex;
std::string lines;
std::atomic<int> open_ranges = 0;
thread_local int depth = 0;

// A domain's handle is its name.
nvtxDomainHandle_t create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const std::scoped_lock lock(mutex);
  lines += *reinterpret_cast<const std::string*>(domain) + "\t" + std::to_string(depth) + "\t" +
           attributes->message.ascii + "\n";
  ++open_ranges;
  return depth++;
}

int pop(nvtxDomainHandle_t) {
  --open_ranges;
  return --depth;
}

template <class Function>
void install(NvtxFunctionTable table, int which, Function* function) {
  *table[which] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  install(table, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  install(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  install(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}

extern "C" __attribute__((visibility("default"))) const char* nvtx_recorder_take() {
  static std::string taken;
  const std::scoped_lock lock(mutex);
  taken = lines + (open_ranges > 0 ? "open\n" : "");
  lines.clear();
  return taken.c_str();
}
