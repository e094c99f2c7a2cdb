// BlockRunner: one SM of the host device. Runs the lanes (CUDA threads) of one block as fibers of the calling thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device/host/block_failure.h"
#include "runtime/device/host/fault_guard.h"
#include "runtime/device/host/host_options.h"
#include "runtime/device/host/prelude/host_abi.h"

namespace hone {

class AccessTrace;

/// Where a module's machine code lies.
struct CodeRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::uintptr_t module_begin = 0;  ///< where the module's address 0 lies
};

/// All blocks of a launch have this in common.
struct BlockWork {
  AccessTrace* trace = nullptr;  ///< HostOptions::trace
  void (*call)(void* const* arguments) = nullptr;  ///< runs one lane
  CodeRange code;  ///< that `call` belongs to
  void* const* arguments = nullptr;
  hone_host::Index3 grid{};
  hone_host::Index3 extent{};  ///< of a block
  HostOrder order;
  HostCopies copies;
  unsigned char smem_fill = 0xff;  ///< HostOptions::smem_fill
  std::chrono::milliseconds deadline{};
};

/// The calling thread's copy of a module's shared memory: static first, dynamic at the end.
struct SharedMemory {
  unsigned char* begin = nullptr;
  std::size_t static_bytes = 0;            ///< alignment before the dynamic part included
  std::size_t dynamic_bytes = 0;           ///< as the launch says
  std::size_t dynamic_reserved_bytes = 0;  ///< as the module reserves
};

struct BlockState;

/// Lanes switch directly to one another: a lane that waits hands over to the next that is ready, and the last to
/// arrive at a meeting point makes all ready again. Between meeting points lanes run undisturbed, in HostOrder.
///
/// Used by one thread at a time; a block runs on one thread from start to end.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Guards run() on the calling thread for as long as the result lives; wanted once per launch.
  FaultGuard guard(Watchdog& watchdog) { return FaultGuard(*state_, watchdog); }

  /// Runs one block to its end. On failure the lanes' stacks are abandoned without unwinding, and the runner can run
  /// the next block.
  BlockFailure run(const BlockWork& work, const SharedMemory& shared, hone_host::Index3 block);

 private:
  std::unique_ptr<BlockState> state_;
};

}  // namespace hone
