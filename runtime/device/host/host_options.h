// HostOptions: how the host device is set up; the defaults are what users get, the rest is for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <hone/host_check.h>

#include "runtime/device/host/block_failure.h"
#include "runtime/jit/host_compiler.h"

namespace hone {

class AccessTrace;

/// When asynchronous copies to shared memory land. A kernel that reads before it has waited finds the old bytes.
struct HostCopies {
  enum class Kind : std::uint8_t {
    at_once,  ///< when they are started
    late,     ///< some at once, some when their thread or others have waited, in an order of their own
  };
  Kind kind = Kind::late;
  std::uint64_t seed = 0;  ///< of the late ones: the same seed gives the same times
};

struct HostOptions {
  /// SMs, each an OS thread; 0: one per processor.
  int sm_count = 0;

  /// The C++ compiler, a name to look up on PATH or a path; "": the first of c++, g++ and clang++.
  std::string compiler;

  HostOrder order;

  /// Under sanitizers and where there is a trace, all land at once: they count as accesses of the thread that starts
  /// them.
  HostCopies copies = {};

  /// Each byte of shared memory holds this before each block: as it is, a NaN as float or double, −1 as an integer.
  unsigned char smem_fill = 0xff;

  /// A block that still runs after this long while it spins on atomics is given up: it waits for a block that cannot
  /// start before it ends. So is one with a thread that uses this much processor time without meeting others, and one
  /// that uses ten times as much in all.
  std::chrono::milliseconds block_deadline{20000};

  /// Time in which other programs have the processor counts for the thread and the block, too, up to three times as
  /// much as what they use: for those whose user waits.
  bool counts_waiting = false;

  /// For what is compiled.
  HostInstrumentation instrumentation = HostInstrumentation::none;

  /// Is told the accesses of modules that are `traced`. With one SM alone; null: nobody is.
  AccessTrace* trace = nullptr;

  /// Only the blocks at the corners of the grid run in each launch.
  bool corner_blocks_only = false;

  /// Hears of a failure before launch() throws it.
  std::function<void(const BlockFailure&)> on_failure = [](const BlockFailure&) {};

  /// The line of an address in the module that a kernel was stopped at; "" when it is not known. Null: no check looks
  /// for it.
  std::function<std::string(std::uint64_t)> describe_code = nullptr;

  /// Says in a report what lies at or near an address that a kernel should not have touched; "" when nothing does.
  std::function<std::string(std::uintptr_t)> describe_address = [](std::uintptr_t) { return std::string(); };
};

}  // namespace hone
