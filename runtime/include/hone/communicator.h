// Communicator: a group of ranks that reduce together, each with a device of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/stream.h>

namespace hone {

struct CommunicatorOptions {
  /// Before each call, compare what the ranks ask for. Ranks that ask for different things then all throw an error that
  /// names them, and the failure of one rank before the exchange is one of all. It costs a round trip, and waits for
  /// the stream's host side: off for NCCL, unless a program is being debugged; on for MPI, which waits anyway. Ranks
  /// must agree. A call in a stream that is being captured is not compared.
  bool checked = false;

  /// How long a rank waits for the others, where the host waits. A rank that tunes keeps the others waiting.
  std::chrono::milliseconds timeout{60000};

  /// With more ranks, NCCL exchanges blocks by an ncclAllReduce() over zeros instead of an ncclAllGather(): the latency
  /// of the one grows with the logarithm of the number of nodes, that of the other with the number of ranks. The
  /// default is where NCCL's own model of both has them equal, on nodes of 8 GPUs (docs/collectives.md).
  int most_ranks_of_all_gather = 32;
};

/// A group of ranks. hone::nccl_communicator() makes one of an ncclComm_t, hone::MpiCommunicator of an MPI_Comm.
///
/// All ranks must make the same calls in the same order, and only one thread at a time may use a communicator. After
/// an error of an exchange (device_failed), ranks may no longer agree on where they are, and the communicator must not
/// be used any more. Each communicator belongs to the first device that it is used with, which must live longer.
class Communicator {
 public:
  explicit Communicator(CommunicatorOptions options);
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// "NCCL 2.27.7", "MPI": for messages.
  virtual std::string name() const = 0;

  /// Why `device` cannot be used with this communicator; "" if it can.
  virtual std::string refuse(const Device&) const { return ""; }

  /// True if all_gather() only enqueues, so that a stream may be captured.
  virtual bool is_asynchronous() const = 0;

  /// Makes the blocks of all ranks known to all: rank r's lies at `blocks` + r · block_bytes, in memory of `device`,
  /// and this rank's is filled in. In the order of `stream`. Throws Error(device_failed).
  virtual void all_gather(Device& device, void* blocks, std::size_t block_bytes, Stream stream) = 0;

  /// Sends `bytes` bytes of host memory to all ranks; returns those of all, in the order of ranks. Waits for at most
  /// CommunicatorOptions::timeout, then throws Error(device_failed).
  virtual std::vector<std::byte> all_gather_host(Device& device, const void* mine, std::size_t bytes) = 0;

  /// Sends a text, of any length on each rank, to all ranks; returns those of all. Throws as all_gather_host().
  std::vector<std::string> exchange(Device& device, std::string_view mine);

  const CommunicatorOptions& options() const { return options_; }

 private:
  friend class AllReduceCall;
  CommunicatorOptions options_;
  std::unique_ptr<class GatherBuffers> buffers_;
};

}  // namespace hone
