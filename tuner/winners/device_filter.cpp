#include "tuner/winners/device_filter.h"

#include <string>

#include "tuner/text/suggest.h"

namespace hone::tuner {

bool matches_device(const cache::DeviceRecord& device, std::string_view text) {
  const std::string wanted = lower_case(text);
  return wanted.empty() || lower_case(device.kind) == wanted || lower_case(device.architecture) == wanted ||
         lower_case(device.name).find(wanted) != std::string::npos;
}

}  // namespace hone::tuner
