#include "runtime/device/host/host_facts.h"

#include <gnu/libc-version.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include <hone/device.h>

#include "runtime/device/host/prelude/host_abi.h"

namespace hone {
namespace {

constexpr int kSmemBytes = 48 * 1024;

std::int64_t last_level_cache_bytes() {
  const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::max(level3 > 0 ? level3 : sysconf(_SC_LEVEL2_CACHE_SIZE), 0L);
}

/// Under ThreadSanitizer blocks of one SM are ordered, so a few SMs are needed whatever the machine has; and it knows
/// a bounded number of fibers (8128 in GCC 12's runtime), of which an SM takes up to 1024.
int default_sm_count() {
  return HONE_TSAN ? 4 : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string machine_architecture() {
  utsname system{};
  uname(&system);
  return system.machine;
}

}  // namespace

/// The first "model name" of /proc/cpuinfo; ARM kernels print none.
std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return machine_architecture() + " CPU";
}

DeviceFacts host_facts(int sm_count) {
  struct sysinfo memory {};
  sysinfo(&memory);
  DeviceFacts facts;
  facts.kind = "host";
  facts.architecture = machine_architecture();
  facts.name = cpu_name();
  facts.driver = std::string("glibc ") + gnu_get_libc_version();
  facts.sm_count = sm_count > 0 ? sm_count : default_sm_count();
  facts.max_threads_per_block = static_cast<int>(hone_host::kMaxLanes);
  facts.max_threads_per_sm = static_cast<int>(hone_host::kMaxLanes);
  facts.max_blocks_per_sm = 1;
  facts.registers_per_sm = 0;
  facts.registers_per_block = 0;
  facts.smem_bytes_per_sm = kSmemBytes;
  facts.smem_bytes_per_block = kSmemBytes;
  facts.smem_bytes_per_block_optin = kSmemBytes;
  facts.l2_bytes = last_level_cache_bytes();
  facts.memory_bytes = static_cast<std::int64_t>(memory.totalram) * memory.mem_unit;
  return facts;
}

std::int64_t host_free_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string label, unit;
  for (std::int64_t kib = 0; info >> label >> kib; std::getline(info, unit))
    if (label == "MemAvailable:") return kib * 1024;
  struct sysinfo memory {};
  sysinfo(&memory);
  return static_cast<std::int64_t>(memory.freeram) * memory.mem_unit;
}

}  // namespace hone
