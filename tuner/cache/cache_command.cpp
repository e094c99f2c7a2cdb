#include "tuner/cache/cache_command.h"

#include <CLI/CLI.hpp>

namespace hone::tuner {

void set_up_cache(CLI::App& app, CacheOptions& options) {
  CLI::App* cache = app.add_subcommand("cache");
  cache->require_subcommand(0, 1);
  set_up_cache_path(*cache, options.path);
  set_up_cache_list(*cache, options.list);
  set_up_cache_stats(*cache, options.stats);
  set_up_cache_verify(*cache, options.verify);
  set_up_cache_repair(*cache, options.repair);
  set_up_cache_export(*cache, options.export_);
  set_up_cache_import(*cache, options.import);
  set_up_cache_merge(*cache, options.merge);
  set_up_cache_prune(*cache, options.prune);
  set_up_cache_snapshot(*cache, options.snapshot);
}

ExitCode run_cache(std::string_view name, const CacheOptions& options, const Context& context) {
  if (name == "cache path") return run_cache_path(options.path, context);
  if (name == "cache list") return run_cache_list(options.list, context);
  if (name == "cache stats") return run_cache_stats(options.stats, context);
  if (name == "cache verify") return run_cache_verify(options.verify, context);
  if (name == "cache repair") return run_cache_repair(options.repair, context);
  if (name == "cache export") return run_cache_export(options.export_, context);
  if (name == "cache import") return run_cache_import(options.import, context);
  if (name == "cache merge") return run_cache_merge(options.merge, context);
  if (name == "cache prune") return run_cache_prune(options.prune, context);
  return run_cache_snapshot(options.snapshot, context);
}

}  // namespace hone::tuner
