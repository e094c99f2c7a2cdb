#include "cache/maintenance/summary.h"

#include <string_view>

#include "cache/maintenance/eviction.h"
#include "cache/maintenance/open_file.h"
#include "cache/packed_trials.h"
#include "cache/place.h"
#include "cache/properties.h"

namespace hone::cache {

Summary summarize(const std::filesystem::path& given_path) {
  Summary summary;
  const std::filesystem::path path = resolved_path(given_path);
  summary.exists = file_exists(path);
  if (!summary.exists) return summary;
  const ReadingFile file(path);
  summary.schema_version = file.schema_version();
  summary.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  if (file.is_empty()) return summary;

  Connection& connection = file.connection();
  const auto number = [&](std::string_view sql) {
    Statement statement = connection.prepare(sql);
    std::int64_t value = 0;
    statement.step();  // an aggregate has a row in any case
    statement.read(value);
    return value;
  };
  summary.used_bytes = used_bytes(connection);
  if (summary.schema_version >= 2) summary.limit_bytes = read_property(connection, kMaxBytesProperty).value_or(0);
  summary.devices = number("SELECT count(*) FROM device");
  summary.toolchains = number("SELECT count(*) FROM toolchain");
  summary.winners = number("SELECT count(*) FROM winner");
  summary.lent_winners = number(
      "SELECT count(*) FROM winner WHERE tuned AND NOT (extent0 BETWEEN first0 AND last0"
      " AND extent1 BETWEEN first1 AND last1 AND extent2 BETWEEN first2 AND last2)");
  summary.untuned_winners = number("SELECT count(*) FROM winner WHERE NOT tuned");
  summary.without_code = number("SELECT count(*) FROM winner WHERE binary NOT IN (SELECT digest FROM binary)");
  summary.binaries = number("SELECT count(*) FROM binary");
  summary.stored_binary_bytes = number("SELECT coalesce(sum(length(code)), 0) FROM binary");
  summary.binary_bytes = summary.schema_version <= kLastVersionOfTrialRows
                             ? summary.stored_binary_bytes
                             : number("SELECT coalesce(sum(max(bytes, length(code))), 0) FROM binary");
  summary.tunings = number("SELECT count(*) FROM tuning");
  summary.trials = number(summary.schema_version <= kLastVersionOfTrialRows
                              ? "SELECT count(*) FROM trial"
                              : "SELECT coalesce(sum(trial_count), 0) FROM tuning");
  return summary;
}

}  // namespace hone::cache
