// Peer: a library that Hone is compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/dtype.h>

namespace hone::benchmarks {

/// The question to a peer: one of Hone's operations on n elements, and the dtype that Hone's result has.
struct PeerProblem {
  std::string_view operation;
  DType dtype = DType::f32;
  DType result = DType::f32;
  std::int64_t n = 0;
};

/// A call of a peer's best interface for one problem, with everything that it needs allocated beforehand: the result
/// stays in device memory.
class PeerCall {
 public:
  virtual ~PeerCall() = default;

  /// Enqueues one call; may be captured. Throws Error(device_failed).
  virtual void enqueue(std::span<const void* const> inputs, Stream stream) = 0;

  /// The values that the last call left, in the order of Hone's. Waits for the stream.
  virtual std::vector<long double> result(Stream stream) = 0;
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string_view name() const = 0;
  virtual std::string version() const = 0;

  /// Null when the peer has no such operation.
  virtual std::unique_ptr<PeerCall> plan(const PeerProblem& problem) = 0;
};

/// The peers that this program was built with, for a CUDA device; none on the host.
std::vector<std::unique_ptr<Peer>> make_peers(const std::shared_ptr<Device>& device);

/// Why there are not more: "" or "built without CUB: …".
std::string missing_peers(const Device& device);

}  // namespace hone::benchmarks
