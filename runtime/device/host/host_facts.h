// host_facts(): what the operating system says about this machine.
#pragma once

#include <cstdint>

#include <hone/device_facts.h>

namespace hone {

/// Facts of the host device with `sm_count` SMs; 0: one per processor that the process may use.
DeviceFacts host_facts(int sm_count);

/// Programs may still allocate so much without swapping: MemAvailable of /proc/meminfo; free pages where there is none.
std::int64_t host_free_memory_bytes();

}  // namespace hone
