#include "benchmarks/common/race_track.h"

#include <utility>

namespace hone::benchmarks {

RaceTrack::RaceTrack(std::shared_ptr<Device> device)
    : device_(std::move(device)), flush_(device_), other_(device_) {}

std::vector<Timing> RaceTrack::time(Stream stream, const Setting& setting, std::span<const Contestant> contestants,
                                    std::size_t input_bytes, const TimingOptions& options) const {
  const Surroundings surroundings{
      .make_cold =
          [&](Stream on) {
            if (flush_.is_needed_for(input_bytes)) flush_.enqueue(on);
          },
      .other = [&](Stream on) { other_.enqueue(on); }};
  return time_interleaved(*device_, stream, setting, contestants, surroundings, options);
}

}  // namespace hone::benchmarks
