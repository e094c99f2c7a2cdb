// hone cache: the commands that look after the cache file.
#pragma once

#include <string_view>

#include "tuner/cache/export_command.h"
#include "tuner/cache/import_command.h"
#include "tuner/cache/list_command.h"
#include "tuner/cache/merge_command.h"
#include "tuner/cache/path_command.h"
#include "tuner/cache/prune_command.h"
#include "tuner/cache/repair_command.h"
#include "tuner/cache/snapshot_command.h"
#include "tuner/cache/stats_command.h"
#include "tuner/cache/verify_command.h"

namespace hone::tuner {

struct CacheOptions {
  CachePathOptions path;
  CacheListOptions list;
  CacheStatsOptions stats;
  CacheVerifyOptions verify;
  CacheRepairOptions repair;
  CacheExportOptions export_;
  CacheImportOptions import;
  CacheMergeOptions merge;
  CachePruneOptions prune;
  CacheSnapshotOptions snapshot;
};

void set_up_cache(CLI::App& app, CacheOptions& options);

/// `name` is the whole name of the command: "cache list".
ExitCode run_cache(std::string_view name, const CacheOptions& options, const Context& context);

}  // namespace hone::tuner
