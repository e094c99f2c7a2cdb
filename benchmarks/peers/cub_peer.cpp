#include "benchmarks/peers/cub_peer.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>

#include "benchmarks/common/numbers.h"
#include "benchmarks/peers/cub_reductions.h"

namespace hone::benchmarks {
namespace {

void require_success(cudaError_t status, const CubReduction& reduction) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::device_failed, fmt::format("CUB failed in {} of {}: {}", reduction.operation, reduction.dtype,
                                                    cudaGetErrorString(status)));
}

class CubCall final : public PeerCall {
 public:
  CubCall(std::shared_ptr<Device> device, const CubReduction& reduction, const PeerProblem& problem)
      : device_(std::move(device)), reduction_(reduction), problem_(problem), out_(device_, kResultBytes) {
    // Only the addresses' types matter to this question.
    const std::array<const void*, 2> inputs{out_.data(), out_.data()};
    require_success(reduction.run(nullptr, temp_bytes_, inputs.data(), problem.n, out_.data(), nullptr), reduction);
    temp_ = DeviceBuffer(device_, temp_bytes_);
  }

  void enqueue(std::span<const void* const> inputs, Stream stream) override {
    require_success(reduction_.run(temp_.data(), temp_bytes_, inputs.data(), problem_.n, out_.data(), stream),
                    reduction_);
  }

  std::vector<long double> result(Stream stream) override {
    std::vector<std::byte> bytes(info(problem_.result).size_bytes * static_cast<std::size_t>(reduction_.values));
    device_->copy_to_host(bytes.data(), out_.data(), bytes.size(), stream);
    device_->synchronize(stream);
    return decode(problem_.result, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  const CubReduction& reduction_;
  PeerProblem problem_;
  std::size_t temp_bytes_ = 0;
  DeviceBuffer out_;
  DeviceBuffer temp_;
};

using Column = std::span<const CubReduction>;

class Cub final : public Peer {
 public:
  Cub(std::shared_ptr<Device> device, std::string_view name, std::vector<Column> columns)
      : device_(std::move(device)), name_(name), columns_(std::move(columns)) {}

  std::string_view name() const override { return name_; }
  std::string version() const override {
    return fmt::format("{}.{}.{}", cub_version() / 100000, cub_version() / 100 % 1000, cub_version() % 100);
  }

  std::unique_ptr<PeerCall> plan(const PeerProblem& problem) override {
    for (const Column& column : columns_) {
      for (const CubReduction& reduction : column) {
        if (reduction.dtype == info(problem.dtype).name && reduction.operation == problem.operation &&
            reduction.result == info(problem.result).name)
          return std::make_unique<CubCall>(device_, reduction, problem);
      }
    }
    return nullptr;
  }

 private:
  std::shared_ptr<Device> device_;
  std::string_view name_;
  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<Peer> make_cub_peer(std::shared_ptr<Device> device) {
  return std::make_unique<Cub>(
      std::move(device), "CUB",
      std::vector<Column>{cub_reductions_f16(), cub_reductions_bf16(), cub_reductions_f32(), cub_reductions_f64(),
                          cub_reductions_i8(), cub_reductions_i16(), cub_reductions_i32(), cub_reductions_i64(),
                          cub_reductions_u8(), cub_reductions_u16(), cub_reductions_u32(), cub_reductions_u64(),
                          cub_reductions_bool()});
}

#ifdef HONE_WITH_CUB_DETERMINISM
std::vector<std::unique_ptr<Peer>> make_cub_determinism_peers(const std::shared_ptr<Device>& device) {
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<Cub>(device, "g2g", std::vector<Column>{cub_gpu_to_gpu()}));
  peers.push_back(std::make_unique<Cub>(device, "atomic", std::vector<Column>{cub_not_guaranteed()}));
  return peers;
}
#endif

}  // namespace hone::benchmarks
