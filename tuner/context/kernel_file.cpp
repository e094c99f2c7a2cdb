#include "tuner/context/kernel_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/sdk/kernel_file.h>

#include <algorithm>

#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {

Unit read_one_kernel(const std::filesystem::path& path, const std::string& entry) {
  const auto refuse = [&path](const std::string& why) {
    throw CommandError(ExitCode::usage, fmt::format("'{}' {}", printable(path.string()), why));
  };
  if (entry.empty()) {
    Unit unit = read_kernel_file(path, {""});
    unit.entries = global_functions(unit.source);
    if (unit.entries.empty()) refuse("has no function marked __global__; name the kernel with --entry");
    if (unit.entries.size() > 1)
      refuse(fmt::format("has several kernels; choose one with --entry: {}", fmt::join(unit.entries, ", ")));
    return unit;
  }
  Unit unit = read_kernel_file(path, {entry});
  std::string name = entry.substr(0, entry.find('<'));  // of a template
  name.erase(0, name.rfind(':') + 1);                   // in a namespace
  const std::vector<std::string> known = global_functions(unit.source);
  const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
  if (!is_known && !known.empty())
    refuse(fmt::format("has no kernel '{}'; it has: {}", printable(entry), fmt::join(known, ", ")));
  return unit;
}

}  // namespace hone::tuner
