// HostOptions: how the host device is set up; the defaults are what users get, the rest is for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hone {

/// In which order lanes and blocks run between meeting points. Results that depend on it come from a race: lanes run
/// undisturbed between meeting points, so forward and reverse together show both orders of every pair.
struct HostOrder {
  enum class Kind : std::uint8_t { forward, reverse, random };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;  ///< for random: the same seed gives the same order of lanes
};

struct HostOptions {
  /// SMs, each an OS thread; 0: one per processor.
  int sm_count = 0;

  /// The C++ compiler, a name to look up on PATH or a path; "": the first of c++, g++ and clang++.
  std::string compiler;

  HostOrder order;

  /// A block that still runs after this long while it spins on atomics is given up: it waits for a block that cannot
  /// start before it ends.
  std::chrono::milliseconds block_deadline{20000};
};

}  // namespace hone
