// CUB as a Peer.
#pragma once

#include <memory>
#include <vector>

#include "benchmarks/peers/peer.h"

namespace hone::benchmarks {

std::unique_ptr<Peer> make_cub_peer(std::shared_ptr<Device> device);

/// CUB's sums that are the same on every GPU ("g2g"), and those that may differ from run to run ("atomic").
std::vector<std::unique_ptr<Peer>> make_cub_determinism_peers(const std::shared_ptr<Device>& device);

}  // namespace hone::benchmarks
