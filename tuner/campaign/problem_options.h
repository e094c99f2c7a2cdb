// ProblemOptions: the options that say what is to be tuned or planned, and the problems that they name.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "tuner/campaign/campaign_file.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// As typed. Lists that are not given are those of the family (see Selection).
struct ProblemOptions {
  std::string family = "reduce";
  std::optional<std::string> ops = {};
  std::optional<std::string> dtypes = {};
  std::optional<std::string> sizes = {};
  std::optional<std::string> pitch = {};
  std::optional<std::string> alignments = {};
  std::optional<std::string> context = {};
  std::optional<std::string> nan = {};
  std::optional<std::string> numerics = {};
  std::optional<std::string> accumulator = {};
  std::optional<std::string> result = {};
  std::string preset = {};
  std::string file = {};
};

/// FAMILY, --op, --dtype, …, --preset and --file.
void add_problem_options(CLI::App& sub, ProblemOptions& options);

/// Throws CommandError(usage) when more than one of the options' groups says what to work on. `missed`: so does another
/// option, --missed.
void require_one_source(const ProblemOptions& options, bool missed = false);

/// The problems that the options name, and what a file or preset says of how. Combinations that are not defined are
/// left out, with a line on `err`. Throws CommandError.
CampaignFile choose_problems(const ProblemOptions& options, std::ostream& err);

}  // namespace hone::tuner
