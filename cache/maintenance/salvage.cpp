#include "cache/maintenance/salvage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cache/maintenance/page_records.h"
#include "cache/packed_trials.h"
#include "cache/row_sql.h"
#include "cache/schema.h"

namespace hone::cache {
namespace {

struct Column {
  std::string name;
  std::string type;  ///< "INTEGER", "REAL", "TEXT" or "BLOB", as in the statement that makes the table
  bool nullable = false;
  std::string default_value;  ///< in SQL; "": the column has none. Rows of earlier versions end before those that have
};

/// A table whose rows carry digests, or are covered by those of others.
struct SalvagedTable {
  std::string name;
  std::string row_id_column;  ///< the column that is the row id itself, and NULL in the record; "" for none
  bool has_row_ids = true;
  std::string key;  ///< what rows are looked up by
  std::int64_t schema_version = kSchemaVersion;  ///< the last one that has the table
  std::vector<Column> columns = {};
};

std::vector<SalvagedTable> tables() {
  return {{.name = "device", .row_id_column = "id", .key = "id"},
          {.name = "toolchain", .row_id_column = "id", .key = "id"},
          {.name = "binary", .row_id_column = "", .key = "digest"},
          {.name = "winner", .row_id_column = "id", .key = "id"},
          {.name = "tuning", .row_id_column = "winner", .key = "winner"},
          {.name = "trial", .row_id_column = "", .has_row_ids = false, .key = "winner, rank",
           .schema_version = kLastVersionOfTrialRows},
          {.name = "property", .row_id_column = "", .has_row_ids = false, .key = "name"}};
}

/// Makes the table as the schema has it, asks what its columns are, and makes it once more with them alone.
void make_unconstrained(Connection& scratch, SalvagedTable& table) {
  for (const SchemaObject& object : schema_objects(table.schema_version)) {
    if (object.type == "table" && object.name == table.name) scratch.execute(object.sql);
  }
  {
    Statement info =
        scratch.prepare("SELECT name, type, \"notnull\", coalesce(dflt_value, '') FROM pragma_table_info(?)");
    info.bind(table.name);
    while (info.step()) {
      Column& column = table.columns.emplace_back();
      bool not_null = false;
      info.read(column.name);
      info.read(column.type);
      info.read(not_null);
      info.read(column.default_value);
      column.nullable = !not_null && column.name != table.row_id_column;
    }
  }
  std::vector<std::string> definitions;
  for (const Column& column : table.columns) {
    definitions.push_back(column.name + " " + column.type);
    if (!column.default_value.empty()) definitions.back() += " DEFAULT " + column.default_value;
  }
  scratch.execute("DROP TABLE " + table.name);
  scratch.execute(fmt::format("CREATE TABLE {} ({})", table.name, fmt::join(definitions, ", ")));
  scratch.execute(fmt::format("CREATE INDEX {}_key ON {} ({})", table.name, table.name, table.key));
}

/// Tables are STRICT, so a value of another type was not written by SQLite. A whole number may stand for a REAL.
bool fits(const RawValue& value, const Column& column) {
  if (std::holds_alternative<std::monostate>(value)) return column.nullable;
  if (std::holds_alternative<std::string>(value)) return column.type == "TEXT";
  if (std::holds_alternative<double>(value)) return column.type == "REAL";
  if (std::holds_alternative<std::int64_t>(value)) return column.type == "INTEGER" || column.type == "REAL";
  return column.type == "BLOB";
}

bool fits(const RawRecord& record, const SalvagedTable& table) {
  const std::size_t count = record.values.size();
  if (record.is_table_row != table.has_row_ids || count > table.columns.size()) return false;
  if (count < table.columns.size() && table.columns[count].default_value.empty()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_row_id = table.columns[i].name == table.row_id_column;
    const bool is_null = std::holds_alternative<std::monostate>(record.values[i]);
    if (is_row_id ? !is_null : !fits(record.values[i], table.columns[i])) return false;
  }
  return true;
}

void insert(Connection& scratch, const SalvagedTable& table, const RawRecord& record) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < record.values.size(); ++i) names.push_back(table.columns[i].name);
  Statement statement = scratch.prepare(insert_sql(table.name, names));
  for (std::size_t i = 0; i < record.values.size(); ++i) {
    const RawValue& value = record.values[i];
    if (table.columns[i].name == table.row_id_column) statement.bind(record.row_id);
    else if (const auto* text = std::get_if<std::string>(&value)) statement.bind(std::string_view(*text));
    else if (const auto* blob = std::get_if<std::vector<std::byte>>(&value)) statement.bind(std::span(*blob));
    else if (const auto* integer = std::get_if<std::int64_t>(&value)) statement.bind(*integer);
    else if (const auto* real = std::get_if<double>(&value)) statement.bind(*real);
    else statement.bind(std::numeric_limits<double>::quiet_NaN());  // NULL
  }
  statement.run();
}

}  // namespace

SalvageCounts salvage(const RawFile& damaged, Connection& scratch) {
  std::vector<SalvagedTable> wanted = tables();
  for (SalvagedTable& table : wanted) make_unconstrained(scratch, table);
  scratch.set_schema_version(kSchemaVersion);

  SalvageCounts counts;
  const ReadBytes read = [&](std::int64_t offset, std::span<std::byte> bytes) { return damaged.read(offset, bytes); };
  const PageCounts pages = each_record(read, damaged.size_bytes(), [&](const RawRecord& record) {
    for (const SalvagedTable& table : wanted) {
      if (!fits(record, table)) continue;
      insert(scratch, table, record);
      ++counts.rows;
      return;
    }
  });
  pack_trial_rows(scratch, "trial", kLastVersionOfTrialRows);
  counts.pages = pages.pages;
  counts.unreadable_pages = pages.unreadable_pages;
  return counts;
}

}  // namespace hone::cache
