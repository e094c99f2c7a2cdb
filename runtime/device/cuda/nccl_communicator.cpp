#include <hone/nccl_communicator.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include <fmt/format.h>
#include <hone/error.h>
#include <hone/own_stream.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/nccl_library.h"

namespace hone {
namespace {

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(ncclComm* communicator, CommunicatorOptions options)
      : Communicator(options), nccl_(NcclLibrary::get()), communicator_(communicator) {
    if (!communicator)
      throw Error(ErrorCode::invalid_argument, "nccl_communicator() was given no communicator; make one with "
                                               "ncclCommInitRank() or ncclCommInitAll()");
    nccl_.check(nccl_.comm_rank(communicator, &rank_), "asking for the rank");
    nccl_.check(nccl_.comm_count(communicator, &ranks_), "asking for the number of ranks");
    int device = 0;
    nccl_.check(nccl_.comm_device(communicator, &device), "asking for the device");
    device_ = fmt::format("cuda:{}", device);
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string name() const override { return "NCCL " + nccl_.version; }
  bool is_asynchronous() const override { return true; }

  std::string refuse(const Device& device) const override {
    if (device.name() == device_) return "";
    return fmt::format("the NCCL communicator is one of {}, and the session of {}; make both of one device", device_,
                       device.name());
  }

  void all_gather(Device& device, void* blocks, std::size_t block_bytes, Stream stream) override {
    auto* const mine = static_cast<std::byte*>(blocks) + block_bytes * static_cast<std::size_t>(rank_);
    if (ranks_ > options().most_ranks_of_all_gather && block_bytes % sizeof(std::uint64_t) == 0) {
      // Words of one rank plus zeros of all others: the sum is exact in any order.
      const std::size_t before = block_bytes * static_cast<std::size_t>(rank_);
      const std::size_t all_bytes = block_bytes * static_cast<std::size_t>(ranks_);
      if (before > 0) device.fill_bytes(blocks, 0, before, stream);
      if (all_bytes > before + block_bytes)
        device.fill_bytes(mine + block_bytes, 0, all_bytes - before - block_bytes, stream);
      nccl_.check(nccl_.all_reduce(blocks, blocks, all_bytes / sizeof(std::uint64_t), NcclLibrary::kUint64,
                                   NcclLibrary::kSum, communicator_, stream),
                  "adding the blocks of ranks to zeros");
      return;
    }
    nccl_.check(nccl_.all_gather(mine, blocks, block_bytes, NcclLibrary::kBytes, communicator_, stream),
                "gathering the blocks of ranks");
  }

  std::vector<std::byte> all_gather_host(Device& device, const void* mine, std::size_t bytes) override {
    const std::size_t all_bytes = bytes * static_cast<std::size_t>(ranks_);
    if (!stream_) stream_ = std::make_unique<OwnStream>(device);
    if (staging_.size_bytes() < all_bytes)
      staging_ = DeviceBuffer(std::shared_ptr<Device>(std::shared_ptr<Device>(), &device), all_bytes);
    const Stream stream = stream_->get();
    device.copy_to_device(staging_.as<std::byte>() + bytes * static_cast<std::size_t>(rank_), mine, bytes, stream);
    all_gather(device, staging_.data(), bytes, stream);
    wait(stream);
    std::vector<std::byte> received(all_bytes);
    device.copy_to_host(received.data(), staging_.data(), all_bytes, stream);
    device.synchronize(stream);
    return received;
  }

 private:
  /// cudaStreamSynchronize() would wait for a rank that is gone.
  void wait(Stream stream) const {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const cudaError_t status = cudaStreamQuery(stream);
      if (status == cudaSuccess) return;
      if (status != cudaErrorNotReady) check(status, "waiting for the other ranks");
      int failure = NcclLibrary::kSuccess;
      nccl_.check(nccl_.async_error(communicator_, &failure), "asking for failures of other ranks");
      nccl_.check(failure, "waiting for the other ranks");
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited > options().timeout)
        throw Error(ErrorCode::device_failed,
                    fmt::format("NCCL: not all of the {} ranks answered rank {} within {} ms: one has failed, made "
                                "another call or is still tuning (CommunicatorOptions::timeout); end the exchange with "
                                "ncclCommAbort()",
                                ranks_, rank_, options().timeout.count()));
      if (waited > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const NcclLibrary& nccl_;
  ncclComm* communicator_;
  int rank_ = 0, ranks_ = 1;
  std::string device_;
  std::unique_ptr<OwnStream> stream_;  ///< for what the host exchanges
  DeviceBuffer staging_;
};

}  // namespace

std::unique_ptr<Communicator> nccl_communicator(ncclComm* communicator, CommunicatorOptions options) {
  return std::make_unique<NcclCommunicator>(communicator, options);
}

}  // namespace hone
