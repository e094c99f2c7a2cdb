// MpiCommunicator: a Communicator of an MPI_Comm. Compiled by the program that includes it, which links MPI: the
// library itself knows no MPI, of which there are several that are not binary compatible.
#pragma once

#include <mpi.h>

#include <chrono>
#include <climits>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <hone/communicator.h>
#include <hone/error.h>

namespace hone {

/// Exchanges blocks through host memory: for the host device, and for GPUs without NCCL. Waits in every call, so that a
/// stream cannot be captured. Ranks are compared before each call, unless the options say otherwise.
class MpiCommunicator final : public Communicator {
 public:
  /// Duplicates `communicator`, so that messages of the caller are no others' business; all of its ranks must construct
  /// one together. MPI must be initialised, and finalised later than this object dies. Throws Error(device_failed).
  explicit MpiCommunicator(MPI_Comm communicator, CommunicatorOptions options = {.checked = true})
      : Communicator(options) {
    check(MPI_Comm_dup(communicator, &communicator_), "duplicating the communicator");
    check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "setting the error handler");
    check(MPI_Comm_rank(communicator_, &rank_), "asking for the rank");
    check(MPI_Comm_size(communicator_, &ranks_), "asking for the number of ranks");
  }
  ~MpiCommunicator() override {
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    if (!is_finalized && !has_failed_) MPI_Comm_free(&communicator_);
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string name() const override { return "MPI"; }
  bool is_asynchronous() const override { return false; }

  void all_gather(Device& device, void* blocks, std::size_t block_bytes, Stream stream) override {
    std::byte* const first = static_cast<std::byte*>(blocks);
    std::vector<std::byte> mine(block_bytes);
    device.copy_to_host(mine.data(), first + block_bytes * static_cast<std::size_t>(rank_), block_bytes, stream);
    device.synchronize(stream);
    const std::vector<std::byte> received = all_gather_host(device, mine.data(), block_bytes);
    device.copy_to_device(first, received.data(), received.size(), stream);
    device.synchronize(stream);
  }

  std::vector<std::byte> all_gather_host(Device&, const void* mine, std::size_t bytes) override {
    if (has_failed_)
      throw Error(ErrorCode::device_failed, "MPI: an earlier exchange of this communicator failed; make a new one");
    if (bytes > INT_MAX)
      throw Error(ErrorCode::unsupported, "MPI counts in int, and " + std::to_string(bytes) +
                                              " bytes of each rank are more; reduce fewer rows at once");
    // MPI may write to both until the exchange is over, which it never is for a rank that is gone.
    auto memory = std::make_unique<Memory>();
    memory->mine.assign(static_cast<const std::byte*>(mine), static_cast<const std::byte*>(mine) + bytes);
    memory->all.resize(bytes * static_cast<std::size_t>(ranks_));
    const int count = static_cast<int>(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(memory->mine.data(), count, MPI_BYTE, memory->all.data(), count, MPI_BYTE, communicator_,
                         &request),
          "sending to the other ranks");
    if (!wait(request)) {
      has_failed_ = true;
      memory.release();
      throw Error(ErrorCode::device_failed,
                  "MPI: not all of the " + std::to_string(ranks_) + " ranks answered rank " + std::to_string(rank_) +
                      " within " + std::to_string(options().timeout.count()) +
                      " ms: one has failed, made another call or is still tuning (CommunicatorOptions::timeout)");
    }
    return std::move(memory->all);
  }

 private:
  struct Memory {
    std::vector<std::byte> mine, all;
  };

  bool wait(MPI_Request& request) {
    const auto begin = std::chrono::steady_clock::now();
    for (int done = 0;;) {
      const int status = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (status != MPI_SUCCESS) has_failed_ = true;
      check(status, "waiting for the other ranks");
      if (done) return true;
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited > options().timeout) return false;
      if (waited > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(50));
      else std::this_thread::yield();
    }
  }

  static void check(int status, std::string_view doing) {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(status, text, &length);
    throw Error(ErrorCode::device_failed,
                "MPI failed while " + std::string(doing) + ": " + std::string(text, static_cast<std::size_t>(length)));
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  bool has_failed_ = false;
};

}  // namespace hone
