#include "tuner/cache/prune_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cache/maintenance/prune.h"
#include "cache/store.h"
#include "tuner/cache/cache_output.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/staleness.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"

namespace hone::tuner {
namespace {

using cache::PruneCounts;
using cache::StoredWinner;

bool chooses_winners(const CachePruneOptions& options) {
  return options.stale || !options.device.empty() || !options.older_than.empty();
}

/// A winner goes when everything that was asked for is true of it.
std::function<bool(const StoredWinner&)> rule(const CachePruneOptions& options, const Context& context) {
  if (!chooses_winners(options)) return [](const StoredWinner&) { return false; };
  std::optional<std::int64_t> stored_before;
  if (!options.older_than.empty()) stored_before = context.environment.unix_time() - parse_age(options.older_than);
  std::vector<CurrentToolchain> current;
  if (options.stale) current = context.environment.toolchains();
  return [=, device = options.device, stale = options.stale](const StoredWinner& stored) {
    return (!stored_before || stored.created_at < *stored_before) && matches_device(stored.key.device, device) &&
           (!stale || currency(stored.key, current) == Currency::stale);
  };
}

/// `has_none`: 0 is no limit.
std::int64_t parse_room(std::string_view option, std::string_view text, bool has_none) {
  const std::int64_t bytes = parse_bytes(text);
  if (const std::string refusal = cache::max_bytes_fault(bytes, has_none); !refusal.empty())
    throw CommandError(ExitCode::usage, fmt::format("{} {}: {}", option, printable(text), refusal));
  return bytes;
}

void print_result(const std::filesystem::path& path, const CachePruneOptions& options, const PruneCounts& counts,
                  const Context& context) {
  context.out << fmt::format("{}{}: {} of {} removed, {} → {}\n", options.dry_run ? "Dry run: " : "",
                             printable(path.string()), counts.winners + counts.evicted.winners,
                             count_text(counts.winners_before, "winner"),
                             format_bytes(counts.bytes_before), format_bytes(counts.bytes_after));
  const cache::EvictionCounts& evicted = counts.evicted;
  if (evicted.binaries + evicted.tunings + evicted.winners > 0) {
    context.out << fmt::format("Of that for the size: {}, trials of {}, {}\n", count_text(evicted.binaries, "binary"),
                               count_text(evicted.tunings, "tuning"), count_text(evicted.winners, "winner"));
  }
  if (!options.limit.empty()) {
    const std::int64_t limit = parse_bytes(options.limit);
    context.out << (limit > 0 ? fmt::format("It keeps to {} from now on\n", format_bytes(limit))
                              : "It has no limit of its own any more\n");
  }
}

}  // namespace

void set_up_cache_prune(CLI::App& cache, CachePruneOptions& options) {
  CLI::App* sub = cache.add_subcommand("prune");
  file_name(sub->add_option("--cache", options.cache)->take_last());
  one_of(sub->add_option("--device", options.device)->take_last(), words_in(kDeviceKinds));
  sub->add_option("--older-than", options.older_than)->take_last();
  sub->add_option("--max-size", options.max_size)->take_last();
  sub->add_option("--limit", options.limit)->take_last();
  sub->add_flag("--stale", options.stale)->disable_flag_override();
  sub->add_flag("--dry-run", options.dry_run)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_prune(const CachePruneOptions& options, const Context& context) {
  if (!chooses_winners(options) && options.max_size.empty() && options.limit.empty()) {
    throw CommandError(ExitCode::usage,
                       "nothing says what to remove; give --older-than, --device, --stale, --max-size or --limit");
  }
  cache::PruneRules rules;
  if (!options.max_size.empty()) rules.max_bytes = parse_room("--max-size", options.max_size, false);
  if (!options.limit.empty()) rules.limit_bytes = parse_room("--limit", options.limit, true);
  if (rules.limit_bytes.value_or(0) > 0 && rules.max_bytes < 0) rules.max_bytes = *rules.limit_bytes;
  rules.removes = rule(options, context);
  rules.dry_run = options.dry_run;
  const std::filesystem::path path = changed_cache_file(options.cache, options.dry_run, context);
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  const PruneCounts counts = cache::prune(path, rules);
  if (options.json) {
    print_json({{"cache", path.string()},
                {"dry_run", options.dry_run},
                {"winners_before", counts.winners_before},
                {"removed_winners", counts.winners + counts.evicted.winners},
                {"evicted_binaries", counts.evicted.binaries},
                {"evicted_tunings", counts.evicted.tunings},
                {"evicted_winners", counts.evicted.winners},
                {"bytes_before", counts.bytes_before},
                {"bytes_after", counts.bytes_after}},
               context);
  } else if (exists) {
    print_result(path, options, counts, context);
  }
  if (!exists) say_nothing_there(path, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
