// A library with the names of NCCL's functions, of the version that FAKE_NCCL_VERSION says. Each communicator is rank 2
// of 4 on device 1.
#include <cstddef>
#include <cstdlib>

extern "C" {
int ncclGetVersion(int* version) {
  const char* const said = std::getenv("FAKE_NCCL_VERSION");
  *version = said ? std::atoi(said) : 0;
  return 0;
}
const char* ncclGetErrorString(int) { return "unhandled system error"; }
int ncclCommCount(const void*, int* ranks) { return *ranks = 4, 0; }
int ncclCommCuDevice(const void*, int* device) { return *device = 1, 0; }
int ncclCommUserRank(const void*, int* rank) { return *rank = 2, 0; }
int ncclCommGetAsyncError(void*, int* status) { return *status = 0, 0; }
int ncclAllGather(const void*, void*, std::size_t, int, void*, void*) { return 2; }
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*) { return 2; }
}
