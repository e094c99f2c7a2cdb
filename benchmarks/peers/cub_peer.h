// CUB as a Peer.
#pragma once

#include <memory>

#include "benchmarks/peers/peer.h"

namespace hone::benchmarks {

std::unique_ptr<Peer> make_cub_peer(std::shared_ptr<Device> device);

}  // namespace hone::benchmarks
