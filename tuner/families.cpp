#include "tuner/families.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/tuned_reduce.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tuner/command_error.h"
#include "tuner/suggest.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

constexpr std::array<FamilyRow, 1> kFamilies{{
    {&reduce_family, "sum", "f32", "2^10..2^24"},
}};

}  // namespace

Families built_in_families() { return kFamilies; }

const FamilyRow* find_family(std::string_view name, Families families) {
  const auto found =
      std::find_if(families.begin(), families.end(), [&](const FamilyRow& row) { return row.family().name() == name; });
  return found == families.end() ? nullptr : &*found;
}

const FamilyRow& parse_family(std::string_view name, Families families) {
  if (const FamilyRow* row = find_family(name, families)) return *row;
  std::vector<std::string_view> names;
  for (const FamilyRow& row : families) names.push_back(row.family().name());
  throw CommandError(ExitCode::usage, fmt::format("unknown kernel family '{}'{}; known {} {}", printable(name),
                                                  did_you_mean(name, names), names.size() == 1 ? "is" : "are",
                                                  fmt::join(names, ", ")));
}

}  // namespace hone::tuner
