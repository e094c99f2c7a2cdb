// The process that tunes on one device for a campaign. What hangs or kills it is replaced; the campaign goes on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <hone/device.h>

namespace hone::tuner {

/// The subcommand, unknown to people, that makes the hone command a worker.
inline constexpr std::string_view kWorkerCommand = "worker-of-hone-tune";

/// Where a worker writes which candidate it is about to run: an anonymous file that outlives it.
inline constexpr int kRunningDescriptor = 3;

/// Bytes of that record: a count that rises with every run, and the candidate as JSON.
inline constexpr std::size_t kRunningBytes = 1024;

/// Does what the requests on standard input say (see messages.h), and answers on standard output. When it has to give
/// up, it says so by a FailedAnswer and ends. It ends at once when standard input ends, for then nobody is there to
/// read what it finds. `open_device` is Device::open, or a test's. Returns the exit code.
int run_worker(const std::function<std::shared_ptr<Device>(const std::string&)>& open_device);

}  // namespace hone::tuner
