// Turns the fields of records into statements: names of columns, and values bound and read in their order.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/field_digester.h"
#include "cache/fields.h"
#include "cache/schema.h"
#include "cache/statement.h"

namespace hone::cache {

using Names = std::vector<std::string_view>;

/// The expression that selects a column of ours from a file of an earlier version.
inline std::string_view stored_name(std::string_view name, std::int64_t schema_version) {
  if (schema_version < 8 && (name == "bytes" || name == "trial_bytes")) return "0";
  if (schema_version < 8 && name == "trials") return "x''";
  if (schema_version < 7 && name == "sequence") return "0";
  if (schema_version < 6 && name == "objective") return "'time'";
  if (schema_version < 7 && name == "lender") return "''";
  if (schema_version < 6 && (name == "energy_uj" || name == "energy_spread_uj" || name == "power_limit_w"))
    return "0.0";
  if (schema_version < 5 && name == "numerics") return "replace(numerics, 'reproducible', 'fast')";
  if (schema_version >= 4) return name;
  if (name == "policy") return "variant";
  if (name == "entries") return "''";
  return name;
}

template <class Record>
void append_names(Names& names, std::int64_t schema_version = kSchemaVersion) {
  const Record record;
  each_field(record, [&](std::string_view name, const auto&) { names.push_back(stored_name(name, schema_version)); });
}

struct Binder {
  Statement& statement;

  void operator()(std::string_view, double value) const { statement.bind(storable(value)); }
  void operator()(std::string_view, const auto& value) const { statement.bind(value); }
};

struct Reader {
  Statement& statement;

  void operator()(std::string_view, auto& value) const { statement.read(value); }
};

inline std::string insert_sql(std::string_view table, const Names& names) {
  const std::vector<std::string_view> places(names.size(), "?");
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, fmt::join(names, ", "), fmt::join(places, ", "));
}

}  // namespace hone::cache
