#include "cache/schema.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

#include "cache/errors.h"
#include "cache/properties.h"
#include "cache/step.h"

namespace hone::cache {
namespace {

/// "<type> <name>" → statement, without what SQLite adds by itself: indexes behind UNIQUE and PRIMARY KEY, which have
/// no statement, and the counter behind AUTOINCREMENT.
std::map<std::string, std::string> read_objects(Connection& connection) {
  Statement statement =
      connection.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name");
  std::map<std::string, std::string> objects;
  while (statement.step()) {
    std::string type, name, sql;
    statement.read(type);
    statement.read(name);
    statement.read(sql);
    const bool automatic = name.starts_with("sqlite_autoindex_") && type == "index" && sql.empty();
    const bool counter = name == "sqlite_sequence" && sql == "CREATE TABLE sqlite_sequence(name,seq)";
    if (!automatic && !counter) objects.emplace(type + " " + name, sql);
  }
  return objects;
}

using Objects = std::map<std::string, std::string>;

std::string key_of(const SchemaObject& object) { return fmt::format("{} {}", object.type, object.name); }

/// The first of `expected` that is missing or changed; "" if there is none. Those that are right are taken out of
/// `found`.
std::string take_expected(Objects& found, std::span<const SchemaObject> expected, std::string_view type = "") {
  for (const SchemaObject& object : expected) {
    if (!type.empty() && object.type != type) continue;
    const auto position = found.find(key_of(object));
    if (position == found.end()) return "there is no " + key_of(object);
    if (position->second != object.sql) return fmt::format("the {} was changed", key_of(object));
    found.erase(position);
  }
  return "";
}

/// The first difference from a version of ours; "" if there is none.
std::string difference(Objects found, std::int64_t version) {
  std::string difference = take_expected(found, schema_objects(version));
  if (!difference.empty() || found.empty()) return difference;
  return "it has another " + found.begin()->first;
}

/// True if a newer version, by its own word and by its tables, can be read by us.
bool is_readable(Connection& connection, Objects found) {
  if (!take_expected(found, schema_objects(), "table").empty()) return false;
  for (const auto& [key, sql] : found) {
    if (key.starts_with("trigger ")) return false;
  }
  const std::optional<std::int64_t> reads_from = read_property(connection, kReadsFromProperty);
  return reads_from && *reads_from <= kSchemaVersion;
}

std::int64_t checked_version(Connection& connection, const std::filesystem::path& path, Access access) {
  // These two stand in the header of the file: reading them parses no schema yet.
  const std::int64_t application_id = connection.read_number("PRAGMA application_id");
  const std::int64_t version = connection.read_number("PRAGMA user_version");
  const bool unmarked = application_id == 0 && version == 0;
  if (!unmarked && application_id != kApplicationId) {
    throw store_error(path, StoreFault::foreign, fmt::format("its application_id is {}", application_id));
  }
  if (version > kSchemaVersion && access == Access::read && is_readable(connection, read_objects(connection))) {
    return version;
  }
  if (version > kSchemaVersion) {
    throw store_error(path, StoreFault::newer,
                      fmt::format("its schema has version {}, this Hone knows {}", version, kSchemaVersion));
  }
  if (!unmarked && schema_objects(version).empty()) {
    throw store_error(path, StoreFault::foreign, fmt::format("no Hone has a schema version {}", version));
  }
  Objects objects = read_objects(connection);
  if (unmarked && objects.empty()) return kEmptyFile;
  if (unmarked) throw store_error(path, StoreFault::foreign, "it holds a " + objects.begin()->first);
  const std::string found = difference(std::move(objects), version);
  if (!found.empty()) throw store_error(path, StoreFault::foreign, found);
  return version;
}

}  // namespace

std::int64_t check_schema(Connection& connection, const std::filesystem::path& path, Access access) {
  const Step step("check schema");
  const std::int64_t version = checked_version(connection, path, access);
  connection.set_schema_version(version);
  return version;
}

void create_schema(Connection& connection) {
  const Objects there = read_objects(connection);
  for (const SchemaObject& object : schema_objects()) {
    if (!there.contains(key_of(object))) connection.execute(object.sql);
  }
  write_property(connection, kReadsFromProperty, kReadsFrom);
  connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
  connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  connection.set_schema_version(kSchemaVersion);
}

}  // namespace hone::cache
