// RaceTrack: times contestants in any setting, with cold inputs and with kernels of others.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "benchmarks/common/interleaved.h"
#include "benchmarks/common/mover.h"

namespace hone::benchmarks {

/// The device and buffers that every benchmark times its contestants with. Not thread-safe.
class RaceTrack {
 public:
  explicit RaceTrack(std::shared_ptr<Device> device);

  /// As time_interleaved(). Each call reads `input_bytes`; where those would stay in the cache, it is flushed before
  /// every batch.
  std::vector<Timing> time(Stream stream, const Setting& setting, std::span<const Contestant> contestants,
                           std::size_t input_bytes, const TimingOptions& options) const;

 private:
  std::shared_ptr<Device> device_;
  CacheFlush flush_;
  OtherKernel other_;
};

}  // namespace hone::benchmarks
