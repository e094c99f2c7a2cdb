// Names of processes: who holds a claim, and whether it is still there.
#pragma once

#include <string>
#include <string_view>

namespace hone::cache {

/// Names the calling process among all that there ever were: "<boot> <pid namespace> <pid> <start time>".
std::string this_process();

/// True if `process` is known to have ended. That is only known for processes of this boot of this machine and of the
/// caller's PID namespace: any other may be alive.
bool has_ended(std::string_view process);

}  // namespace hone::cache
