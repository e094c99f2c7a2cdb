#include "benchmarks/collectives/nccl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace hone::benchmarks {

Nccl::Nccl() {
  const char* const named = std::getenv("HONE_NCCL");
  const char* const file = named && *named ? named : "libnccl.so.2";
  void* const library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (!library) throw std::runtime_error(fmt::format("{}; point HONE_NCCL at a libnccl.so.2", dlerror()));
  const auto look_up = [&](const char* symbol, auto& function) {
    void* const address = dlsym(library, symbol);
    if (!address) throw std::runtime_error(fmt::format("{} has no {}", file, symbol));
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  look_up("ncclGetVersion", get_version_);
  look_up("ncclGetErrorString", error_string_);
  look_up("ncclGetUniqueId", get_unique_id_);
  look_up("ncclCommInitRank", init_rank_);
  look_up("ncclAllReduce", all_reduce_);
  look_up("ncclCommDestroy", destroy_);
  look_up("ncclCommAbort", abort_);
  int version = 0;
  check(get_version_(&version), "asking for the version");
  version_ = fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Nccl::Id Nccl::unique_id() const {
  Id id{};
  check(get_unique_id_(&id), "making an id");
  return id;
}

ncclComm* Nccl::init_rank(int ranks, const Id& id, int rank) const {
  ncclComm* communicator = nullptr;
  check(init_rank_(&communicator, ranks, id, rank), "making a communicator");
  return communicator;
}

void Nccl::all_reduce(const void* in, void* out, std::size_t count, ncclComm* communicator, Stream stream) const {
  check(all_reduce_(in, out, count, kFloat, kSum, communicator, stream), "reducing");
}

void Nccl::check(int status, const char* doing) const {
  if (status != 0) throw std::runtime_error(fmt::format("NCCL failed while {}: {}", doing, error_string_(status)));
}

}  // namespace hone::benchmarks
