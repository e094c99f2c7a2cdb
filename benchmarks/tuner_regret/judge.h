// judge(): candidates of several problems, measured side by side in several processes of their own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/tuner_regret/findings.h"
#include "benchmarks/tuner_regret/options.h"

namespace hone::benchmarks {

/// Candidates for one problem of a built-in family: the choice, then its rivals. A choice without rivals is the best of
/// all, and not measured.
struct Rivalry {
  Problem problem;
  std::vector<Candidate> candidates;
};

/// The outcome of a rivalry.
struct Verdicts {
  std::vector<double> us;  ///< the median of each candidate over all processes; 0: wrong or not measured in one of them
  bool is_paced = false;   ///< the fastest takes what the host takes to enqueue it, in at least one process
};

/// The time of launches differs from process to process by more than one can tell in any of them. `command` runs
/// measure_rivalries() on the file that is named behind it; `folder` is for such files. Throws Error(io_failed) when a
/// process fails.
std::vector<Verdicts> judge(const std::vector<Rivalry>& rivalries, std::vector<std::string> command, int processes,
                            const std::filesystem::path& folder);

/// The command for judge(): this program.
std::vector<std::string> judge_command(const RegretOptions& options, const Device& device);

/// Runs in each of the processes: reads the rivalries in `file` and writes their times next to it.
void measure_rivalries(const std::shared_ptr<Device>& device, const std::filesystem::path& file, int compare_ms);

/// Writes the times of a rivalry into its finding. The reference is the fastest of all for the parts "regret" and
/// "families", else the first rival. Returns false, after a message, if the choice or the reference has no time.
bool conclude(const Rivalry& rivalry, const Verdicts& verdicts, Finding& finding);

/// A candidate as findings name it.
std::string text_of(const Problem& problem, const Candidate& candidate);

}  // namespace hone::benchmarks
