#include "benchmarks/peers/peer.h"

#ifdef HONE_WITH_CUB
#include "benchmarks/peers/cub_peer.h"
#endif
#ifdef HONE_WITH_CUBLAS
#include "benchmarks/peers/cublas_peer.h"
#endif

namespace hone::benchmarks {

std::vector<std::unique_ptr<Peer>> make_peers([[maybe_unused]] const std::shared_ptr<Device>& device) {
  std::vector<std::unique_ptr<Peer>> peers;
  if (device->facts().kind != "cuda") return peers;
#ifdef HONE_WITH_CUB
  peers.push_back(make_cub_peer(device));
#endif
#ifdef HONE_WITH_CUB_DETERMINISM
  for (std::unique_ptr<Peer>& peer : make_cub_determinism_peers(device)) peers.push_back(std::move(peer));
#endif
#ifdef HONE_WITH_CUBLAS
  peers.push_back(make_cublas_peer(device));
#endif
  return peers;
}

std::string missing_peers(const Device& device) {
  if (device.facts().kind != "cuda") return "CUB and cuBLAS run on CUDA devices alone";
  std::string missing;
#ifndef HONE_WITH_CUB
  missing += "CUB is missing: configure with -DHONE_BUILD_PEERS=ON where nvcc is. ";
#endif
#ifndef HONE_WITH_CUBLAS
  missing += "cuBLAS is missing: there is no libcublas in the CUDA toolkit, or HONE_PEER_CUBLAS is OFF. ";
#endif
  return missing;
}

}  // namespace hone::benchmarks
