#include "tuner/campaign/campaign_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>

#include "tuner/campaign/presets.h"
#include "tuner/problems/families.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/document_reader.h"
#include "tuner/text/quantities.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::array<std::string_view, 5> kCampaignFields{"budget", "total_budget", "exhaustive", "warm", "problems"};
constexpr std::array<std::string_view, 12> kProblemFields{"family", "op", "dtype", "size", "pitch", "align", "context",
                                                          "nan", "numerics", "accumulator", "result", "weight"};

class Reader : DocumentReader {
 public:
  using DocumentReader::DocumentReader;

  CampaignFile read(const FileTable& table) {
    require_known(table, kCampaignFields, "a campaign");
    CampaignFile file;
    const FileField* total = nullptr;
    for (const FileField& field : table) {
      if (field.name == "budget") file.budget = read_duration(field);
      if (field.name == "total_budget") file.total_budget = read_duration(*(total = &field));
      if (field.name == "exhaustive") file.exhaustive = read_flag(field);
      if (field.name == "warm") file.inputs = read_flag(field) ? InputState::warm : InputState::cold;
      if (field.name == "problems") read_problems(field, file);
    }
    if (file.budget && file.total_budget && *file.total_budget < *file.budget)
      throw error(total->at,
                     "total_budget is for all problems together, and this is less than budget, which is "
                     "for one of them");
    if (file.problems.empty())
      throw error({}, "there is nothing to tune: give 'problems', a list with at least one entry");
    std::stable_sort(file.problems.begin(), file.problems.end(),
                     [](const WeightedProblem& a, const WeightedProblem& b) { return a.weight > b.weight; });
    return file;
  }

 private:
  std::chrono::milliseconds read_duration(const FileField& field) const {
    const std::string text = read_text(field);
    return located(field.value.at, [&] { return parse_duration(text); });
  }

  /// A text, a number, or a list of them, as the options have it: separated by commas.
  std::string read_words(const FileField& field) const {
    std::string words;
    for (const FileValue* value : read_list(field)) words += (words.empty() ? "" : ",") + read_word(field, *value);
    return words;
  }

  double read_weight(const FileField& field) const {
    const double weight = read_number(field);
    if (!(weight > 0) || !std::isfinite(weight))
      throw error(field.value.at, "a weight is above 0; leave a problem out that has none");
    return weight;
  }

  void read_problems(const FileField& field, CampaignFile& file) {
    const auto* list = std::get_if<FileList>(&field.value.content);
    if (!list) throw wrong_kind(field, field.value, "a list of tables");
    for (const FileValue& entry : *list) read_problem(entry.at, read_table(field, entry), file);
  }

  void read_problem(FilePosition at, const FileTable& table, CampaignFile& file) {
    require_known(table, kProblemFields, "a problem");
    Selection selection;
    double weight = 1;
    for (const FileField& field : table)
      if (field.name == "family")
        check(
            field, [](const std::string& text) { parse_family(text); }, selection.family = read_text(field));
    const KernelFamily& family = parse_family(selection.family).family();
    for (const FileField& field : table) {
      const auto words = [&] { return read_words(field); };
      const auto ops = [&](const std::string& text) { return parse_operations(family, text); };
      const auto shapes = [&](const std::string& text) { return parse_family_shapes(family, text); };
      if (field.name == "op") check(field, ops, *(selection.ops = words()));
      if (field.name == "dtype") check(field, parse_dtypes, *(selection.dtypes = words()));
      if (field.name == "size") check(field, shapes, *(selection.sizes = words()));
      if (field.name == "pitch") check(field, parse_pitches, selection.pitch = words());
      if (field.name == "align") check(field, parse_alignments, selection.alignments = words());
      if (field.name == "context") check(field, parse_contexts, selection.context = read_text(field));
      if (field.name == "nan") check(field, parse_nan_policy, selection.nan = read_text(field));
      if (field.name == "numerics") check(field, parse_numerics, selection.numerics = read_text(field));
      if (field.name == "accumulator") check(field, parse_one_dtype, selection.accumulator = read_text(field));
      if (field.name == "result") check(field, parse_one_dtype, selection.result = read_text(field));
      if (field.name == "weight") weight = read_weight(field);
    }
    for (const Problem& problem : located(at, [&] { return list_problems(selection); })) add(problem, weight, file);
  }

  /// Words that mean nothing are complained of where they stand, and not where the problem begins.
  template <class Parse>
  void check(const FileField& field, Parse parse, const std::string& words) const {
    located(field.value.at, [&] { parse(words); });
  }

  static void add(const Problem& problem, double weight, CampaignFile& file) {
    for (WeightedProblem& known : file.problems) {
      if (!same_sweep(known.problem, problem) || known.problem.extents != problem.extents) continue;
      known.weight = std::max(known.weight, weight);
      return;
    }
    file.problems.push_back({.problem = problem, .weight = weight});
  }
};

/// The lightest of all come last.
void add_parts_of_families(std::string_view preset, CampaignFile& file) {
  for (const FamilyRow& row : built_in_families())
    for (const PresetPart& part : row.presets) {
      if (part.preset != preset) continue;
      const Selection selection{.family = std::string(row.family().name()),
                                .ops = std::string(part.operations),
                                .dtypes = std::string(part.dtypes),
                                .sizes = std::string(part.shapes)};
      for (const Problem& problem : list_problems(selection)) file.problems.push_back({.problem = problem});
    }
}

}  // namespace

CampaignFile parse_campaign(std::string_view text, FileFormat format, std::string_view name) {
  return Reader(name).read(read_document(text, format, name));
}

CampaignFile read_campaign_file(const std::filesystem::path& path) {
  const DocumentText document = read_document_file(path, "campaign");
  return parse_campaign(document.text, document.format, printable(path.string()));
}

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const SourceFile& preset : embedded::campaign_presets())
    names.push_back(std::string_view(preset.name).substr(0, preset.name.find('.')));
  return names;
}

CampaignFile read_preset(std::string_view name) {
  const std::vector<std::string_view> names = preset_names();
  const auto known = std::find(names.begin(), names.end(), name);
  if (known == names.end())
    throw CommandError(ExitCode::usage, fmt::format("unknown preset '{}'{}; known are {}", printable(name),
                                                    did_you_mean(name, names), fmt::join(names, ", ")));
  const SourceFile& preset = embedded::campaign_presets()[static_cast<std::size_t>(known - names.begin())];
  CampaignFile file = parse_campaign(preset.text, FileFormat::json, preset.name);
  add_parts_of_families(name, file);
  return file;
}

}  // namespace hone::tuner
