// describe_races(): the text of races that an AccessTrace has found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device/host/access_trace.h"

namespace hone {

/// Lines that each follow a line break: for the first races the place in memory, thread, file and line of both
/// accesses, and what to do, at last. `module` is the code that was traced; `describe_address` says what lies at an
/// address outside of shared memory. "" if there are no races.
std::string describe_races(const std::vector<Race>& races, const std::vector<std::byte>& module,
                           const std::function<std::string(std::uintptr_t)>& describe_address);

}  // namespace hone
