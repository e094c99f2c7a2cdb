#include "tuner/campaign/problem_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <ostream>
#include <string_view>
#include <vector>

#include "tuner/campaign/campaign_file.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/selection.h"
#include "tuner/text/command_error.h"
#include "tuner/text/option_values.h"

namespace hone::tuner {
namespace {

/// So many of the problems that are left out are named.
constexpr std::size_t kMostNamed = 6;

}  // namespace

void add_problem_options(CLI::App& sub, ProblemOptions& options) {
  one_of(sub.add_option("FAMILY", options.family), family_words);
  some_of(sub.add_option("--op", options.ops)->join(','), operation_words, kEveryOp);
  some_of(sub.add_option("--dtype", options.dtypes)->join(','), dtype_words, kAll);
  sub.add_option("--size", options.sizes)->join(',');
  sub.add_option("--pitch", options.pitch)->take_last();
  some_of(sub.add_option("--align", options.alignments)->take_last(), words_in(kAlignmentWords), kAll);
  one_of(sub.add_option("--context", options.context)->take_last(), words_in(kContextWords));
  one_of(sub.add_option("--nan", options.nan)->take_last(), words_in(kNanWords));
  one_of(sub.add_option("--numerics", options.numerics)->take_last(), words_in(kNumericsNames));
  one_of(sub.add_option("--accumulator", options.accumulator)->take_last(), dtype_words);
  one_of(sub.add_option("--result", options.result)->take_last(), dtype_words);
  one_of(sub.add_option("--preset", options.preset)->take_last(), [] {
    const std::vector<std::string_view> names = preset_names();
    return Words(names.begin(), names.end());
  });
  file_name(sub.add_option("--file", options.file)->take_last());
}

void require_one_source(const ProblemOptions& options, bool missed) {
  std::vector<std::string_view> given;
  const auto name_if = [&](bool is_given, std::string_view option) {
    if (is_given) given.push_back(option);
  };
  name_if(!options.preset.empty(), "--preset");
  name_if(!options.file.empty(), "--file");
  name_if(missed, "--missed");
  if (given.empty()) return;
  name_if(options.ops.has_value(), "--op");
  name_if(options.dtypes.has_value(), "--dtype");
  name_if(options.sizes.has_value(), "--size");
  name_if(options.pitch.has_value(), "--pitch");
  name_if(options.alignments.has_value(), "--align");
  name_if(options.context.has_value(), "--context");
  name_if(options.nan.has_value(), "--nan");
  name_if(options.numerics.has_value(), "--numerics");
  name_if(options.accumulator.has_value(), "--accumulator");
  name_if(options.result.has_value(), "--result");
  if (given.size() > 1)
    throw CommandError(ExitCode::usage, fmt::format("{} says what to work on, and so does {}; give one of them alone",
                                                    given[0], given[1]));
}

CampaignFile choose_problems(const ProblemOptions& options, std::ostream& err) {
  if (!options.preset.empty()) return read_preset(options.preset);
  if (!options.file.empty()) return read_campaign_file(options.file);
  CampaignFile campaign;
  Selection selection{.family = options.family, .ops = options.ops, .dtypes = options.dtypes, .sizes = options.sizes};
  const auto set = [](std::string& to, const std::optional<std::string>& from) {
    if (from) to = *from;
  };
  set(selection.pitch, options.pitch);
  set(selection.alignments, options.alignments);
  set(selection.context, options.context);
  set(selection.nan, options.nan);
  set(selection.numerics, options.numerics);
  set(selection.accumulator, options.accumulator);
  set(selection.result, options.result);
  for (const Problem& problem : list_problems(selection)) campaign.problems.push_back({.problem = problem});
  std::vector<std::string> left_out = list_left_out(selection);
  if (left_out.size() > kMostNamed + 1) {
    left_out[kMostNamed] = fmt::format("and {} more", left_out.size() - kMostNamed);
    left_out.resize(kMostNamed + 1);
  }
  if (!left_out.empty()) err << fmt::format("hone: not defined, so left out: {}\n", fmt::join(left_out, ", "));
  return campaign;
}

}  // namespace hone::tuner
