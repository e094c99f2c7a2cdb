#include "cache/limits.h"

#include <algorithm>
#include <string>

#include "cache/row_sql.h"

namespace hone::cache {
namespace {

std::string limits_digest(const LimitsRecord& limits) {
  Digest digest;
  each_field(limits, FieldDigester{digest});
  return digest.hex();
}

/// 0: not measured.
double least(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

}  // namespace

LimitsRecord merged(const LimitsRecord& old, const LimitsRecord& next) {
  const std::int64_t age = next.measured_at - old.measured_at;
  if (age < 0 || age > kLimitsLifetimeS) return next;
  LimitsRecord both = next;
  both.enqueue_us = least(old.enqueue_us, next.enqueue_us);
  both.stream_launch_us = least(old.stream_launch_us, next.stream_launch_us);
  both.graph_launch_us = least(old.graph_launch_us, next.graph_launch_us);
  both.read_gbps = std::max(old.read_gbps, next.read_gbps);
  return both;
}

std::optional<LimitsRecord> find_limits(Connection& connection, const LimitsRecord& key) {
  if (connection.schema_version() < 9) return std::nullopt;
  Names names;
  append_names<LimitsRecord>(names);
  Statement statement = connection.prepare(
      fmt::format("SELECT {}, digest FROM limits WHERE device = ? AND machine = ? AND driver = ?",
                  fmt::join(names, ", ")));
  each_key_field(key, Binder{statement});
  if (!statement.step()) return std::nullopt;
  LimitsRecord found;
  std::string digest;
  each_field(found, Reader{statement});
  statement.read(digest);
  if (digest != limits_digest(found)) return std::nullopt;
  return found;
}

LimitsRecord put_limits(Connection& connection, const LimitsRecord& limits) {
  const std::optional<LimitsRecord> old = find_limits(connection, limits);
  LimitsRecord both = old ? merged(*old, limits) : limits;
  Names names;
  append_names<LimitsRecord>(names);
  names.push_back("digest");
  std::string sql = insert_sql("limits", names);
  sql.replace(0, std::string_view("INSERT").size(), "REPLACE");
  Statement statement = connection.prepare(sql);
  const std::string digest = limits_digest(both);
  each_field(both, Binder{statement});
  statement.bind(digest).run();
  return both;
}

}  // namespace hone::cache
