// What turns the fields of records into statements: names of columns, and values bound and read in their order.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cache/fields.h"
#include "cache/statement.h"

namespace hone::cache {

using Names = std::vector<std::string_view>;

/// NULL is how SQLite stores what is not a number; an infinite time means as little.
inline double storable(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

template <class Record>
void append_names(Names& names) {
  const Record record;
  each_field(record, [&](std::string_view name, const auto&) { names.push_back(name); });
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
