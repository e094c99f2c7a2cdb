#include "tuner/problems/families.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tuner/problems/kernel_spec_file.h"
#include "tuner/text/command_error.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {

const FamilyRow* find_family(std::string_view name, Families families) {
  const auto found =
      std::find_if(families.begin(), families.end(), [&](const FamilyRow& row) { return row.family().name() == name; });
  return found == families.end() ? nullptr : &*found;
}

const FamilyRow& parse_family(std::string_view name, Families families) {
  if (names_kernel_file(name)) return kernel_file_family(name);
  if (const FamilyRow* row = find_family(name, families)) return *row;
  std::vector<std::string_view> names;
  std::vector<std::string> known;
  for (const FamilyRow& row : families) {
    names.push_back(row.family().name());
    known.push_back(fmt::format("{} ({})", names.back(), fmt::join(row.family().extent_names(), " x ")));
  }
  throw CommandError(ExitCode::usage, fmt::format("unknown kernel family '{}'{}; known {} {}; a kernel of your own is "
                                                  "named by its file, such as {}.toml",
                                                  printable(name), did_you_mean(name, names),
                                                  names.size() == 1 ? "is" : "are", fmt::join(known, ", "),
                                                  printable(name)));
}

}  // namespace hone::tuner
