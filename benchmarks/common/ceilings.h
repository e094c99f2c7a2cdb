// Ceilings: the fastest plain read or copy of so many bytes, of all that are tried.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hone/own_stream.h>

#include "benchmarks/common/mover.h"
#include "benchmarks/common/race_track.h"

namespace hone::benchmarks {

/// Returns the policies that are tried on a device. Their grids, and the device's own copy, come on top.
std::vector<MoverPolicy> mover_policies(const DeviceFacts& facts, bool copies);

/// A plain read or copy of a fixed number of bytes.
struct PlainMove {
  std::string name;  ///< "bulk read, 12 chunks of 16 KiB, 132 blocks"
  std::function<void(const void* in, void* out, Stream stream)> enqueue;
};

/// Tries loads through the registers, with and without L1, a block for each tile and whole waves of blocks, bulk copies
/// through shared memory and, of copies, the device's own. They race in a graph, each call behind the last one's.
/// Compiles what it tries on first use. Not thread-safe. `track` must outlive it.
class Ceilings {
 public:
  Ceilings(std::shared_ptr<Device> device, const RaceTrack& track);

  /// The fastest read of `bytes` of any of `inputs`, or copy to `out` unless that is null; tried once for each number
  /// of bytes. `inputs` are as many copies of the data as calls rotate through. All are aligned to kPackBytes, and
  /// `out` is in nobody's use. Valid as long as this object.
  const PlainMove& fastest(std::span<const void* const> inputs, void* out, std::size_t bytes);

 private:
  std::vector<PlainMove> moves_of(bool copies, std::size_t bytes);
  const std::vector<std::unique_ptr<Mover>>& movers(bool copies);

  std::shared_ptr<Device> device_;
  const RaceTrack& track_;
  OwnStream stream_;
  std::vector<std::unique_ptr<Mover>> readers_, copiers_;
  std::map<std::pair<bool, std::size_t>, PlainMove> fastest_;  ///< by whether it copies, and bytes
};

}  // namespace hone::benchmarks
