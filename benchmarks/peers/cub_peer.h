// CUB as a Peer.
#pragma once

#include <memory>

#include "benchmarks/peers/peer.h"

namespace hone::benchmarks {

std::unique_ptr<Peer> make_cub_peer(std::shared_ptr<Device> device);

/// CUB's sums that are the same on every GPU.
std::unique_ptr<Peer> make_cub_gpu_to_gpu_peer(std::shared_ptr<Device> device);

}  // namespace hone::benchmarks
