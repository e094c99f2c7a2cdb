#include "tuner/cache/cache_output.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <ostream>

#include "tuner/context/cache_path.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {

std::filesystem::path cache_file(const std::string& option, const Context& context) {
  return required_cache_path(option, context.environment.session_options());
}

std::filesystem::path changed_cache_file(const std::string& option, bool dry_run, const Context& context) {
  const SessionOptions from_environment = context.environment.session_options();
  const std::filesystem::path path = required_cache_path(option, from_environment);
  if (is_only_read(option, from_environment) && !dry_run) {
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' is only read; give --cache PATH, or take ro: away",
                                   printable(path.string())));
  }
  return path;
}

nlohmann::ordered_json to_json(const cache::CopyCounts& counts) {
  return {{"added", counts.added},
          {"replaced", counts.replaced},
          {"kept", counts.kept},
          {"unchanged", counts.unchanged},
          {"binaries", counts.binaries},
          {"damaged_winners", counts.damaged_winners},
          {"damaged_tunings", counts.damaged_tunings},
          {"without_code", counts.without_code}};
}

void print_counts(const cache::CopyCounts& counts, const Context& context) {
  const auto line = [&](std::int64_t count, std::string_view what) {
    if (count > 0) context.out << fmt::format("  {:<10}{}\n", count, what);
  };
  if (counts.added + counts.replaced + counts.kept + counts.unchanged + counts.binaries == 0)
    context.out << "  there was nothing to add\n";
  line(counts.added, "added");
  line(counts.replaced, "replaced: better than what was there");
  line(counts.kept, "not taken: what is there is better");
  line(counts.unchanged, "there already");
  line(counts.binaries, "binaries copied");
}

void warn_of_damage(const cache::CopyCounts& counts, const Context& context) {
  const auto warn = [&](std::int64_t count, std::string_view what) {
    if (count > 0) context.err << fmt::format("hone: {} {}\n", count_text(count, "winner"), what);
  };
  warn(counts.damaged_winners, "left out: damaged; hone cache verify says which");
  warn(counts.damaged_tunings, "taken without trials: those are damaged");
  warn(counts.without_code, "taken without code: it is damaged or was evicted, and will be compiled when it is needed");
}

}  // namespace hone::tuner
