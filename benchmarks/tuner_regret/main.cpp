// Measures the worth of the tuner's choices: most parts run `hone tune` as anybody would, from an empty cache, and
// measure what it chose side by side with what more effort finds.
//
//   regret     against an exhaustive search of the same problems: choice, the exhaustive winner and its next four
//   stability  against a second campaign from an empty cache
//   interrupted  against a campaign that was interrupted at ten random moments and went on
//   untuned    at sizes that were not tuned (a prime near 1.2 · 2^k, and 1.5 · 2^k) against a tuning at that very size
//   time       the wall time of campaigns alone
//   families   problems of every family, each tuned alone, against what is valid, or a random sample of it where the
//              time (--seconds) does not suffice for all; only where it is asked for
//
// Candidates are compared in processes of their own (judge.h).
//
// Findings are written after each line or round of problems, so that what is there when the time is over can be used.
#include <algorithm>
#include <string>

#include <hone/hone.h>

#include "benchmarks/common/program.h"
#include "benchmarks/tuner_regret/campaign_study.h"
#include "benchmarks/tuner_regret/family_study.h"
#include "benchmarks/tuner_regret/judge.h"
#include "benchmarks/tuner_regret/options.h"

namespace hone::benchmarks {
namespace {

void set_up(CommandLine& command_line, RegretOptions& options) {
  command_line.describe(
      "What the tuner's choices are worth: against an exhaustive search, a second campaign, and at sizes between");
  command_line.add("--hone", options.hone, "the hone command");
  command_line.require("--hone");
  command_line.add("--device", options.device, "auto, cuda:N or host");
  command_line.add("--part", options.parts, "regret, stability, interrupted, untuned, time (all), or families");
  command_line.add("--op", options.ops, "operations");
  command_line.add("--dtype", options.dtypes, "dtypes");
  command_line.add("--from", options.first_exponent, "the smallest size is 2^FROM", 8, 34);
  command_line.add("--to", options.last_exponent, "the largest size is 2^TO", 8, 34);
  command_line.add("--budget-ms", options.budget_ms, "of hone tune, for one problem");
  command_line.add("--exhaustive-ms", options.exhaustive_ms, "of the exhaustive search, for one problem");
  command_line.add("--compare-ms", options.compare_ms, "for measuring choices side by side, each time");
  command_line.add("--compare-processes", options.compare_processes,
                   "that measure them, one after the other; the median counts");
  command_line.add("--time-limit-s", options.time_limit_s, "what is not begun by then is left out");
  command_line.add_flag("--standard", options.standard, "time hone tune --preset standard, too");
  command_line.add("--families", options.families, "of the part families; all of them");
  command_line.add("--problems", options.problems, "of each family, each in streams and graphs");
  command_line.add("--seconds", options.seconds, "for the part families, divided among its problems");
  command_line.add_flag("--small", options.is_small, "families: problems that suit the host device");
  command_line.add("--keep", options.keep, "keep the cache files in this new folder, for hone explain");
  command_line.add("--out", options.out, "write OUT.json and OUT.txt");
  command_line.add("--judge", options.judge, "measure the rivals in this file alone: what such a process does");
}

bool run_study(const RegretOptions& options) {
  if (!options.judge.empty()) {
    measure_rivalries(Device::open(options.device), options.judge, options.compare_ms);
    return true;
  }
  const bool is_of_families = std::find(options.parts.begin(), options.parts.end(), "families") != options.parts.end();
  if (is_of_families && options.parts.size() > 1)
    throw Error(ErrorCode::invalid_argument, "the part families is a run of its own; leave the other parts out");
  return is_of_families ? study_families(options) : study_campaigns(options);
}

}  // namespace
}  // namespace hone::benchmarks

int main(int argc, char** argv) {
  using namespace hone::benchmarks;
  RegretOptions options;
  return run_program(
      "tuner_regret", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run_study(options); });
}
