// time_warm_call(): what a call takes that finds everything ready.
#pragma once

#include <array>
#include <functional>

#include <hone/device.h>

#include "tuner/text/median.h"

namespace hone::tuner {

/// The median over a few calls on the hit path, in microseconds: one call alone varies by one.
inline double time_warm_call(Device& device, Stream stream, const std::function<void()>& call) {
  std::array<double, 5> samples{};
  for (double& sample : samples) sample = device.time_us(stream, call);
  return upper_median(samples);
}

}  // namespace hone::tuner
