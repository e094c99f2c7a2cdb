#include "tuner/winners/winner_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tuner/problems/families.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"

namespace hone::tuner {
namespace {

using Names = std::vector<std::string_view>;

void add(std::string_view name, Names& names) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

TypedShape parse_one_shape(const std::string& text) {
  const std::vector<TypedShape> shapes = parse_shapes(text);
  if (shapes.size() == 1) return shapes.front();
  throw CommandError(ExitCode::usage, fmt::format("'{}' stands for {} shapes; winners of one are shown at a time",
                                                  printable(text), shapes.size()));
}

}  // namespace

WinnerFilter::WinnerFilter(const FilterOptions& options, const std::vector<cache::StoredWinner>& all)
    : device_(options.device) {
  if (!options.id.empty()) id_ = parse_winner_id(options.id);
  Names families, operations;
  for (const cache::StoredWinner& stored : all) {
    add(stored.key.problem.family, families);
    add(stored.key.problem.operation, operations);
  }
  if (!options.family.empty()) family_ = parse_family_name(options.family, built_in_families(), families);
  if (!options.ops.empty()) {
    for (const std::string_view op : parse_operation_names(built_in_families(), options.ops, operations))
      ops_.emplace_back(op);
  }
  if (!options.dtypes.empty()) {
    for (const DType dtype : parse_dtypes(options.dtypes)) dtypes_.emplace_back(info(dtype).name);
  }
  if (!options.size.empty()) shape_ = parse_one_shape(options.size);
  if (!options.context.empty()) {
    for (const LaunchContext context : parse_contexts(options.context)) contexts_.emplace_back(name(context));
  }
  if (!options.numerics.empty()) numerics_ = name(parse_numerics(options.numerics));
  if (!options.objective.empty()) objective_ = name(parse_objective(options.objective));
}

bool WinnerFilter::passes(const cache::StoredWinner& stored) const {
  const cache::KeyRecord& key = stored.key;
  if (id_ && stored.id != *id_) return false;
  if (!family_.empty() && key.problem.family != family_) return false;
  if (shape_ && !serves_shape(key.problem)) return false;
  if (!objective_.empty() && key.problem.objective != objective_) return false;
  const auto holds = [](const std::vector<std::string>& words, const std::string& word) {
    return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
  };
  return holds(ops_, key.problem.operation) && holds(dtypes_, key.problem.dtype) &&
         holds(contexts_, key.problem.launch_context) && matches_device(key.device, device_) &&
         serves_numerics(key.problem);
}

std::vector<cache::StoredWinner> WinnerFilter::matches(const std::vector<cache::StoredWinner>& all) const {
  std::vector<cache::StoredWinner> winners;
  std::copy_if(all.begin(), all.end(), std::back_inserter(winners),
               [this](const cache::StoredWinner& stored) { return passes(stored); });
  return winners;
}

bool WinnerFilter::serves_numerics(const cache::ProblemRecord& problem) const {
  if (problem.numerics.starts_with(numerics_)) return true;  // "fast, NaN ignored"
  if (numerics_ != name(Numerics::reproducible)) return false;
  // Where no order matters, a call that asks for reproducible numerics is one that asks for fast ones.
  const FamilyRow* const row = find_family(problem.family);
  Extents extents;
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = std::max<std::int64_t>(problem.sizes[i].first, 1);
  std::optional<Problem> asked = problem_of(problem, extents);
  if (!row || !row->as_called || !asked) return false;
  asked->numerics = Numerics::reproducible;
  return row->as_called(*asked).numerics == Numerics::fast;
}

bool WinnerFilter::serves_shape(const cache::ProblemRecord& problem) const {
  const FamilyRow* row = find_family(problem.family);
  const std::optional<Extents> extents =
      extents_of(*shape_, row ? row->family().extent_names().size() : shape_->size());
  return extents && cache::is_within(*extents, problem.sizes);
}

}  // namespace hone::tuner
