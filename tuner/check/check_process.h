// check_in_child(): a check in a process of its own, which what is checked may end.
#pragma once

#include <functional>
#include <string>

#include <hone/host_check.h>

namespace hone::tuner {

/// As check_on_host(), without HostCheckReport::buffers. A process that ends before its report is a failed check: code
/// that calls _exit(), a constructor of a global variable that crashes. What the kernel prints appears where this
/// process prints. Throws what check_on_host() throws, and CommandError(failed) when no process can be started.
///
/// `judge`, which runs in that process, says what is wrong with a report of which no check found anything; "" if
/// nothing is.
HostCheckReport check_in_child(const HostCheck& check,
                               const std::function<std::string(const HostCheckReport&)>& judge = {});

}  // namespace hone::tuner
