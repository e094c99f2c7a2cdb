#include "tuner/cache/stats_command.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>
#include <vector>

#include "cache/maintenance/eviction.h"
#include "cache/maintenance/summary.h"
#include "cache/store.h"
#include "tuner/cache/cache_output.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/staleness.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using cache::Summary;

struct States {
  std::int64_t intact = 0;
  std::int64_t stale = 0;
  std::int64_t unknown = 0;
};

States count_states(const std::filesystem::path& path, const Context& context) {
  States states;
  const std::vector<cache::StoredWinner> winners = cache::Store(path).winners();
  if (winners.empty()) return states;
  const std::vector<CurrentToolchain> current = context.environment.toolchains();
  for (const cache::StoredWinner& stored : winners) {
    ++states.intact;
    const Currency state = currency(stored.key, current);
    states.stale += state == Currency::stale ? 1 : 0;
    states.unknown += state == Currency::unknown ? 1 : 0;
  }
  return states;
}

/// The one of the file's own; else that of whoever writes to it.
std::int64_t limit_bytes(const Summary& summary, const Context& context) {
  return summary.limit_bytes > 0 ? summary.limit_bytes : context.environment.session_options().cache_max_bytes;
}

void print_stats(const std::filesystem::path& path, const Summary& summary, const States& states,
                 const Context& context) {
  const auto line = [&](std::string_view label, const std::string& text) {
    context.out << fmt::format("{:<11}{}\n", label, text);
  };
  const std::int64_t limit = limit_bytes(summary, context);
  line("file", printable(path.string()));
  line("schema", fmt::format("version {}", summary.schema_version));
  line("size", fmt::format("{}, {} in use; {}", format_bytes(summary.file_bytes), format_bytes(summary.used_bytes),
                           limit > 0 ? "keeps to " + format_bytes(limit) : "no limit"));
  line("winners", fmt::format("{}: {} tuned, {} lent, {} untuned", summary.winners,
                              summary.winners - summary.lent_winners - summary.untuned_winners, summary.lent_winners,
                              summary.untuned_winners));
  line("code", fmt::format("{}, {}, packed {}; {} without", count_text(summary.binaries, "binary"),
                           format_bytes(summary.binary_bytes), format_bytes(summary.stored_binary_bytes),
                           count_text(summary.without_code, "winner")));
  line("trials", fmt::format("{} of {}", summary.trials, count_text(summary.tunings, "tuning")));
  line("devices", fmt::format("{}, {}", summary.devices, count_text(summary.toolchains, "toolchain")));
  line("stale", fmt::format("{}; {} of devices that are not in this machine", count_text(states.stale, "winner"),
                            states.unknown));
  const std::int64_t damaged = summary.winners - states.intact;
  if (damaged > 0)
    line("damaged", fmt::format("{}; see: hone cache verify --cache {}", count_text(damaged, "winner"),
                                printable(shell_quoted(path.string()))));
}

}  // namespace

void set_up_cache_stats(CLI::App& cache, CacheStatsOptions& options) {
  CLI::App* sub = cache.add_subcommand("stats");
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_stats(const CacheStatsOptions& options, const Context& context) {
  const std::filesystem::path path = cache_file(options.cache, context);
  const Summary summary = cache::summarize(path);
  const States states = count_states(path, context);
  if (summary.winners == 0) say_nothing_there(path, context);
  if (!options.json) {
    if (summary.exists) print_stats(path, summary, states, context);
    return ExitCode::ok;
  }
  print_json({{"cache", path.string()},
              {"exists", summary.exists},
              {"schema_version", summary.schema_version},
              {"file_bytes", summary.file_bytes},
              {"used_bytes", summary.used_bytes},
              {"limit_bytes", limit_bytes(summary, context)},
              {"devices", summary.devices},
              {"toolchains", summary.toolchains},
              {"winners", summary.winners},
              {"lent_winners", summary.lent_winners},
              {"untuned_winners", summary.untuned_winners},
              {"damaged_winners", summary.winners - states.intact},
              {"stale_winners", states.stale},
              {"winners_of_other_machines", states.unknown},
              {"winners_without_code", summary.without_code},
              {"binaries", summary.binaries},
              {"binary_bytes", summary.binary_bytes},
              {"stored_binary_bytes", summary.stored_binary_bytes},
              {"tunings", summary.tunings},
              {"trials", summary.trials}},
             context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
