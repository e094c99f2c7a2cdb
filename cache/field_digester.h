// FieldDigester: puts the fields of records into a Digest.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/digest.h"
#include "cache/numerics_words.h"

namespace hone::cache {

/// NULL is how SQLite stores what is not a number; an infinite time means as little.
inline double storable(double value) { return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN(); }

/// Columns of versions 6 and 7. Digests cover them only if they say something, so that those of earlier rows and
/// exports hold.
inline bool is_new_default(std::string_view name, double value) {
  return value == 0 && (name == "energy_uj" || name == "energy_spread_uj" || name == "power_limit_w");
}
inline bool is_new_default(std::string_view name, std::string_view value) {
  return (name == "objective" && value == "time") || (name == "lender" && value.empty());
}
inline bool is_new_default(std::string_view name, std::int64_t value) { return value == 0 && name == "sequence"; }

/// A visitor for each_field(): adds each value to the digest as it comes back from a file.
struct FieldDigester {
  Digest& digest;

  void operator()(std::string_view name, double value) const {
    if (!is_new_default(name, value)) digest.add(tag(name), storable(value));
  }
  void operator()(std::string_view name, std::integral auto value) const {
    const auto number = static_cast<std::int64_t>(value);
    if (!is_new_default(name, number)) digest.add(tag(name), number);
  }
  void operator()(std::string_view name, const std::string& value) const {
    if (is_new_default(name, value)) return;
    digest.add(tag(name), std::string_view(name == "numerics" ? first_numerics(value) : value));
  }
  void operator()(std::string_view name, const std::vector<std::byte>& value) const {
    digest.add(tag(name), std::span(value));
  }

 private:
  /// A column keeps its first name here, so that the digests of rows and exports of earlier versions hold.
  static std::string_view tag(std::string_view name) { return name == "policy" ? "variant" : name; }
};

}  // namespace hone::cache
