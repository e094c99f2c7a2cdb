#include "tuner/context/staleness.h"

#include <hone/device.h>
#include <hone/device_facts.h>
#include <hone/error.h>
#include <hone/kernel_family.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cache/identity.h"
#include "tuner/problems/families.h"

namespace hone::tuner {
namespace {

/// A digest that differs from a built-in family's. What a program's own families are today is not known here.
bool has_other_digest(const cache::KeyRecord& key, const CurrentToolchain& current) {
  return std::any_of(current.family_digests.begin(), current.family_digests.end(), [&](const auto& family) {
    return family.first == key.problem.family && family.second != key.toolchain.family_digest;
  });
}

}  // namespace

std::vector<CurrentToolchain> current_toolchains() {
  std::vector<std::pair<std::string, std::string>> digests;
  for (const FamilyRow& row : built_in_families())
    digests.emplace_back(row.family().name(), family_digest(row.family()));
  std::vector<CurrentToolchain> current;
  for (const std::string& name : device_names()) {
    try {
      const std::shared_ptr<Device> device = Device::open(name);
      const DeviceFacts& facts = device->facts();
      current.push_back({.kind = facts.kind,
                         .architecture = facts.architecture,
                         .identity = tuning_identity(facts),
                         .compiler = device->compiler_identity(),
                         .driver = facts.driver,
                         .family_digests = digests});
    } catch (const Error&) {
      // hone devices says why; what is stored for this device counts as unknown.
    }
  }
  return current;
}

Currency currency(const cache::KeyRecord& key, const std::vector<CurrentToolchain>& current) {
  const auto device = std::find_if(current.begin(), current.end(), [&](const CurrentToolchain& here) {
    return cache::same_device(here.record(), key.device);
  });
  if (device == current.end()) return Currency::unknown;
  const bool other_options = !cache::same_options(device->compiler, key.toolchain.compiler);
  const bool other_driver = device->driver != key.toolchain.driver;
  return other_options || other_driver || has_other_digest(key, *device) ? Currency::stale : Currency::current;
}

}  // namespace hone::tuner
