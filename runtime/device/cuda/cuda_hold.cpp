#include "runtime/device/cuda/cuda_hold.h"

#include <chrono>
#include <thread>

#include "runtime/device/cuda/cuda_check.h"

namespace hone {
namespace {

constexpr std::chrono::milliseconds kPatience{10};

using Flag = std::shared_ptr<std::atomic<bool>>;

void CUDART_CB wait_until_over(void* flag) {
  const std::unique_ptr<Flag> is_over(static_cast<Flag*>(flag));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!**is_over && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace

CudaHold::CudaHold(cudaStream_t stream) {
  auto flag = std::make_unique<Flag>(is_over_);
  check(cudaLaunchHostFunc(stream, wait_until_over, flag.get()), "holding a stream");
  flag.release();  // the function's; it is not called, and this lost, when the context has failed
}

}  // namespace hone
