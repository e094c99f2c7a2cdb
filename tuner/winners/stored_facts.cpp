#include "tuner/winners/stored_facts.h"

namespace hone::tuner {

DeviceFacts stored_facts(const cache::DeviceRecord& device) {
  DeviceFacts facts;
  facts.kind = device.kind;
  facts.name = device.name;
  facts.architecture = device.architecture;
  facts.sm_count = device.sm_count;
  facts.max_threads_per_sm = device.max_threads_per_sm;
  return facts_of_identity(device.identity, facts);
}

}  // namespace hone::tuner
