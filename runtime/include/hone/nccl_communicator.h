// nccl_communicator(): a Communicator of an ncclComm_t, without NCCL's headers.
#pragma once

#include <memory>

#include <hone/communicator.h>

struct ncclComm;

namespace hone {

/// Exchanges blocks by ncclAllGather() in the caller's stream, also while it is being captured. `communicator`, which
/// is the type ncclComm_t, stays the caller's and must live longer. It must be one of this process's NCCL: the library
/// is the one that the program has loaded already, else the file that HONE_NCCL names, else libnccl.so.2.
///
/// Throws Error: invalid_argument for null; unsupported if NCCL is missing, older than 2.10, or this build of Hone has
/// no CUDA support; device_failed where NCCL reports a failure.
std::unique_ptr<Communicator> nccl_communicator(ncclComm* communicator, CommunicatorOptions options = {});

}  // namespace hone
