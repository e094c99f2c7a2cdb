// FatalSignalReport: says which kernel file was running when a signal ends the process.
#pragma once

#include <string>

namespace hone::tuner {

/// While it lives, a fault of the process that nothing else handles names the signal and the file on standard error
/// before it ends the process: on the host device, a kernel is code of this process. There is one at a time. It is made
/// before the first launch of a process, since handlers that are there already stay.
class FatalSignalReport {
 public:
  explicit FatalSignalReport(const std::string& kernel_file);
  ~FatalSignalReport();
  FatalSignalReport(const FatalSignalReport&) = delete;
  FatalSignalReport& operator=(const FatalSignalReport&) = delete;
};

}  // namespace hone::tuner
