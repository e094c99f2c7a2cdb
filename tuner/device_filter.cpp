#include "tuner/device_filter.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace hone::tuner {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

bool matches_device(const cache::DeviceRecord& device, std::string_view text) {
  const std::string wanted = lower(text);
  return wanted.empty() || lower(device.kind) == wanted || lower(device.architecture) == wanted ||
         lower(device.name).find(wanted) != std::string::npos;
}

}  // namespace hone::tuner
