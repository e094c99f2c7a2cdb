// judge(): candidates of several problems, measured side by side in several processes of their own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>

namespace hone::benchmarks {

/// Candidates of `reduce` for one problem, at least two.
struct Rivalry {
  Problem problem;
  std::vector<Candidate> candidates;
};

/// The median times of the rivals of each problem over all processes, in µs; 0 of one that could not be measured in
/// each of them. What launches take differs from process to process by more than one can tell in any of them.
/// `command` runs measure_rivalries() on the file that is named behind it; `folder` is for such files. Throws
/// Error(io_failed) when a process fails.
std::vector<std::vector<double>> judge(const std::vector<Rivalry>& rivalries, std::vector<std::string> command,
                                       int processes, const std::filesystem::path& folder);

/// Runs in each of the processes: reads the rivalries in `file` and writes their times next to it.
void measure_rivalries(const std::shared_ptr<Device>& device, const std::filesystem::path& file, int compare_ms);

}  // namespace hone::benchmarks
