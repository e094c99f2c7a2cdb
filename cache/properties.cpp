#include "cache/properties.h"

#include <string>

#include "cache/digest.h"

namespace hone::cache {
namespace {

std::string property_digest(std::string_view name, std::int64_t value) {
  return Digest().add("name", name).add("value", value).hex();
}

}  // namespace

std::optional<std::int64_t> read_property(Connection& connection, std::string_view name) {
  Statement statement = connection.prepare("SELECT value, digest FROM property WHERE name = ?");
  statement.bind(name);
  if (!statement.step()) return std::nullopt;
  std::int64_t value = 0;
  std::string digest;
  statement.read(value);
  statement.read(digest);
  if (digest != property_digest(name, value)) return std::nullopt;
  return value;
}

void write_property(Connection& connection, std::string_view name, std::int64_t value) {
  Statement statement = connection.prepare(
      "INSERT INTO property (name, value, digest) VALUES (?, ?, ?)"
      " ON CONFLICT (name) DO UPDATE SET value = excluded.value, digest = excluded.digest");
  const std::string digest = property_digest(name, value);
  statement.bind(name).bind(value).bind(digest).run();
}

}  // namespace hone::cache
