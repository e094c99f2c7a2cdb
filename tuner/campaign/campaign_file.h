// CampaignFile: weighted problems and how to tune them, from a JSON or TOML file.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include <hone/tuning.h>

#include "tuner/campaign/campaign.h"
#include "tuner/text/document.h"

namespace hone::tuner {

/// Grammar, as fields of JSON or TOML; all but `problems` may be left out:
///
///     campaign := budget: TIME, total_budget: TIME, exhaustive: BOOL, warm: BOOL, problems: [problem…]
///     problem  := family: WORD, op: WORDS, dtype: WORDS, size: SHAPES, pitch: SIZES, align: WORDS, context: WORD,
///                 nan: WORD, numerics: WORD, accumulator: WORD, result: WORD, weight: NUMBER
///
/// A problem that several entries name counts once, with the largest weight. Words, sizes, shapes and times are those
/// of the options of `hone tune`; WORDS, SIZES and SHAPES are a text, a number or a list of them.
struct CampaignFile {
  std::vector<WeightedProblem> problems;  ///< the heaviest first, otherwise in their order
  std::optional<std::chrono::milliseconds> budget;
  std::optional<std::chrono::milliseconds> total_budget;
  std::optional<bool> exhaustive;
  std::optional<InputState> inputs;
};

/// Throws CommandError(input), with "name:line:column: " in front, for fields that are unknown, of the wrong kind,
/// given twice or contradict each other, and where no problem is left.
CampaignFile parse_campaign(std::string_view text, FileFormat format, std::string_view name);

/// The file at `path`; its name says what it is: .json or .toml. Throws CommandError(input).
CampaignFile read_campaign_file(const std::filesystem::path& path);

/// "quick", "standard" and "full": the campaigns that come with the command.
std::vector<std::string_view> preset_names();

/// One of these. Throws CommandError(usage).
CampaignFile read_preset(std::string_view name);

}  // namespace hone::tuner
