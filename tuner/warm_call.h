// time_warm_call(): what a call takes that finds everything ready.
#pragma once

#include <algorithm>
#include <array>
#include <functional>

#include <hone/device.h>

namespace hone::tuner {

/// The median over a few calls on the hit path, in microseconds: one call alone varies by one.
inline double time_warm_call(Device& device, Stream stream, const std::function<void()>& call) {
  std::array<double, 5> samples{};
  for (double& sample : samples) sample = device.time_us(stream, call);
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

}  // namespace hone::tuner
