#include "runtime/device/cuda/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>
#include <hone/error.h>

namespace hone {
namespace {

constexpr const char* kFile = "libnccl.so.2";
constexpr int kOldestVersion = 21000;
constexpr const char* kAdvice = "install NCCL 2.10 or newer, or point HONE_NCCL at its libnccl.so.2";

/// The library and, for messages, where it came from.
struct Opened {
  void* handle;
  std::string from;
};

Opened open_library() {
  // A second copy of NCCL would not know the communicators of the first.
  if (dlsym(RTLD_DEFAULT, "ncclAllGather")) return {RTLD_DEFAULT, "the NCCL of the program"};
  if (void* const loaded = dlopen(kFile, RTLD_NOW | RTLD_NOLOAD)) return {loaded, "the loaded libnccl.so.2"};
  const char* const named = std::getenv("HONE_NCCL");
  const std::string file = named && *named ? named : kFile;
  if (void* const handle = dlopen(file.c_str(), RTLD_NOW)) return {handle, file};
  const char* const why = dlerror();
  throw Error(ErrorCode::unsupported, fmt::format("NCCL cannot be loaded: {}; {}", why ? why : file, kAdvice));
}

template <class Function>
void look_up(const Opened& library, const char* symbol, Function& function) {
  void* const address = dlsym(library.handle, symbol);
  if (!address)
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is no usable NCCL: it lacks {}; {}", library.from, symbol, kAdvice));
  function = reinterpret_cast<Function>(address);
}

NcclLibrary load() {
  const Opened library = open_library();
  NcclLibrary nccl;
  look_up(library, "ncclGetVersion", nccl.get_version);
  look_up(library, "ncclGetErrorString", nccl.error_string);
  look_up(library, "ncclCommCount", nccl.comm_count);
  look_up(library, "ncclCommCuDevice", nccl.comm_device);
  look_up(library, "ncclCommUserRank", nccl.comm_rank);
  look_up(library, "ncclCommGetAsyncError", nccl.async_error);
  look_up(library, "ncclAllGather", nccl.all_gather);
  look_up(library, "ncclAllReduce", nccl.all_reduce);
  int version = 0;
  nccl.check(nccl.get_version(&version), "asking for its version");
  nccl.version = nccl_version_string(version);
  if (version < kOldestVersion)
    throw Error(ErrorCode::unsupported, fmt::format("{} is NCCL {}, which is too old; {}", library.from, nccl.version,
                                                    kAdvice));
  return nccl;
}

}  // namespace

std::string nccl_version_string(int version) {
  // NCCL_VERSION of nccl.h: three digits a part up to 2.8, two more in front from 2.9 on.
  const int scale = version >= 10000 ? 10000 : 1000;
  return fmt::format("{}.{}.{}", version / scale, version % scale / 100, version % 100);
}

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary& library = *new NcclLibrary(load());  // never destroyed: a static Session may ask later
  return library;
}

void NcclLibrary::check(int status, std::string_view doing) const {
  if (status == kSuccess || status == kInProgress) return;
  throw Error(ErrorCode::device_failed, fmt::format("NCCL failed while {}: {}", doing, error_string(status)));
}

}  // namespace hone
