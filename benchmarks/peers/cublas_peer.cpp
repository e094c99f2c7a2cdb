#include "benchmarks/peers/cublas_peer.h"

#include <functional>
#include <limits>

#include <cublas_v2.h>
#include <fmt/format.h>

#include <hone/error.h>

#include "benchmarks/common/numbers.h"

namespace hone::benchmarks {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS's documentation recommends for Hopper

void require_success(cublasStatus_t status, std::string_view what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(ErrorCode::device_failed, fmt::format("cuBLAS failed in {}: {}", what, cublasGetStatusString(status)));
}

/// A handle that leaves results in device memory and has its workspace, so that calls can be captured.
class Handle {
 public:
  explicit Handle(std::shared_ptr<Device> device) : workspace_(std::move(device), kWorkspaceBytes) {
    require_success(cublasCreate(&handle_), "cublasCreate");
    require_success(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
  }
  ~Handle() { cublasDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// The handle for calls on `stream`. Setting a stream resets the workspace.
  cublasHandle_t on(Stream stream) {
    if (!stream_is_set_ || stream != stream_) {
      require_success(cublasSetStream(handle_, stream), "cublasSetStream");
      require_success(cublasSetWorkspace(handle_, workspace_.data(), workspace_.size_bytes()), "cublasSetWorkspace");
      stream_ = stream;
      stream_is_set_ = true;
    }
    return handle_;
  }

 private:
  DeviceBuffer workspace_;
  cublasHandle_t handle_ = nullptr;
  Stream stream_ = nullptr;
  bool stream_is_set_ = false;
};

using Run = cublasStatus_t (*)(cublasHandle_t, std::int64_t n, const void* const* inputs, void* out);

/// One routine for one type. Those that count in 32 bits serve where n allows it.
struct Routine {
  std::string_view operation;
  std::string_view dtype;
  Run run;
  Run run_64;
};

#define HONE_VECTOR(prefix, name, T)                                                                              \
  [](cublasHandle_t handle, std::int64_t n, const void* const* in, void* out) {                                   \
    return cublas##prefix##name(handle, static_cast<int>(n), static_cast<const T*>(in[0]), 1, static_cast<T*>(out)); \
  },                                                                                                              \
      [](cublasHandle_t handle, std::int64_t n, const void* const* in, void* out) {                               \
        return cublas##prefix##name##_64(handle, n, static_cast<const T*>(in[0]), 1, static_cast<T*>(out));        \
      }
#define HONE_DOT(prefix, T)                                                                                       \
  [](cublasHandle_t handle, std::int64_t n, const void* const* in, void* out) {                                   \
    return cublas##prefix##dot(handle, static_cast<int>(n), static_cast<const T*>(in[0]), 1,                       \
                               static_cast<const T*>(in[1]), 1, static_cast<T*>(out));                            \
  },                                                                                                              \
      [](cublasHandle_t handle, std::int64_t n, const void* const* in, void* out) {                               \
        return cublas##prefix##dot_64(handle, n, static_cast<const T*>(in[0]), 1, static_cast<const T*>(in[1]), 1, \
                                      static_cast<T*>(out));                                                      \
      }
#define HONE_INDEX(prefix, T)                                                                                     \
  nullptr, [](cublasHandle_t handle, std::int64_t n, const void* const* in, void* out) {                          \
    return cublasI##prefix##amax_64(handle, n, static_cast<const T*>(in[0]), 1, static_cast<std::int64_t*>(out));  \
  }

constexpr Routine kRoutines[] = {
    {"l1_norm", "f32", HONE_VECTOR(S, asum, float)}, {"l1_norm", "f64", HONE_VECTOR(D, asum, double)},
    {"l2_norm", "f32", HONE_VECTOR(S, nrm2, float)}, {"l2_norm", "f64", HONE_VECTOR(D, nrm2, double)},
    {"dot", "f32", HONE_DOT(S, float)},              {"dot", "f64", HONE_DOT(D, double)},
    {"argmax", "f32", HONE_INDEX(s, float)},         {"argmax", "f64", HONE_INDEX(d, double)},
};

class CublasCall final : public PeerCall {
 public:
  CublasCall(std::shared_ptr<Device> device, std::shared_ptr<Handle> handle, const Routine& routine,
             const PeerProblem& problem)
      : device_(std::move(device)), handle_(std::move(handle)), routine_(routine), problem_(problem), out_(device_, 8) {
    const bool counts_in_32_bits = routine.run && problem.n <= std::numeric_limits<int>::max();
    run_ = counts_in_32_bits ? routine.run : routine.run_64;
  }

  void enqueue(std::span<const void* const> inputs, Stream stream) override {
    require_success(run_(handle_->on(stream), problem_.n, inputs.data(), out_.data()), routine_.operation);
  }

  std::vector<long double> result(Stream stream) override {
    std::vector<std::byte> bytes(info(problem_.result).size_bytes);
    device_->copy_to_host(bytes.data(), out_.data(), bytes.size(), stream);
    device_->synchronize(stream);
    std::vector<long double> values = decode(problem_.result, bytes);
    if (routine_.operation == "argmax") values.front() -= 1;  // BLAS counts from 1
    return values;
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Handle> handle_;
  const Routine& routine_;
  PeerProblem problem_;
  DeviceBuffer out_;
  Run run_ = nullptr;
};

class Cublas final : public Peer {
 public:
  explicit Cublas(std::shared_ptr<Device> device) : device_(device), handle_(std::make_shared<Handle>(device)) {}

  std::string_view name() const override { return "cuBLAS"; }
  std::string version() const override {
    const auto part = [](libraryPropertyType type) {
      int value = 0;
      cublasGetProperty(type, &value);
      return value;
    };
    return fmt::format("{}.{}.{}", part(MAJOR_VERSION), part(MINOR_VERSION), part(PATCH_LEVEL));
  }

  std::unique_ptr<PeerCall> plan(const PeerProblem& problem) override {
    for (const Routine& routine : kRoutines)
      if (routine.operation == problem.operation && routine.dtype == info(problem.dtype).name)
        return std::make_unique<CublasCall>(device_, handle_, routine, problem);
    return nullptr;
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Handle> handle_;
};

}  // namespace

std::unique_ptr<Peer> make_cublas_peer(std::shared_ptr<Device> device) {
  return std::make_unique<Cublas>(std::move(device));
}

}  // namespace hone::benchmarks
