// cuBLAS as a Peer: asum, nrm2, dot and amax of f32 and f64.
#pragma once

#include <memory>

#include "benchmarks/peers/peer.h"

namespace hone::benchmarks {

/// amax is the index of the greatest *magnitude*: the same as argmax, as far as the benchmarks' floats are positive.
std::unique_ptr<Peer> make_cublas_peer(std::shared_ptr<Device> device);

}  // namespace hone::benchmarks
