#include "cache/packed_trials.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "cache/row_sql.h"

namespace hone::cache {
namespace {

using Json = nlohmann::json;

void read(const Json& value, std::string& to) { to = value.get_ref<const std::string&>(); }
void read(const Json& value, std::integral auto& to) {
  to = static_cast<std::remove_reference_t<decltype(to)>>(value.get<std::int64_t>());
}
void read(const Json& value, double& to) {
  to = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json to_json(const TrialRecord& trial) {
  Json values = Json::array();
  each_field(trial, [&](std::string_view, const auto& value) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, bool>) values.push_back(value ? 1 : 0);
    else values.push_back(value);
  });
  return values;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace

Packed pack_trials(const std::vector<TrialRecord>& trials) {
  Json all = Json::array();
  for (const TrialRecord& trial : trials) all.push_back(to_json(trial));
  // A compiler's message that was cut short may end in half a letter.
  return pack(bytes_of(all.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

std::optional<std::vector<TrialRecord>> unpack_trials(Packed packed) {
  const std::optional<std::vector<std::byte>> text = unpack(std::move(packed));
  if (!text) return std::nullopt;
  const auto* begin = reinterpret_cast<const char*>(text->data());
  const Json all = Json::parse(begin, begin + text->size(), nullptr, false);
  if (!all.is_array()) return std::nullopt;
  std::vector<TrialRecord> trials;
  try {
    for (const Json& values : all) {
      std::size_t next = 0;
      each_field(trials.emplace_back(), [&](std::string_view, auto& value) { read(values.at(next++), value); });
    }
  } catch (const Json::exception&) {  // a value is missing or has another type
    return std::nullopt;
  }
  return trials;
}

std::vector<TrialRecord> read_trial_rows(Connection& connection, std::string_view table, std::int64_t winner_id,
                                         std::int64_t schema_version) {
  Names names;
  append_names<TrialRecord>(names, schema_version);
  Statement rows = connection.prepare(
      fmt::format("SELECT {} FROM {} WHERE winner = ? ORDER BY rank", fmt::join(names, ", "), table));
  rows.bind(winner_id);
  std::vector<TrialRecord> trials;
  while (rows.step()) each_field(trials.emplace_back(), Reader{rows});
  return trials;
}

void pack_trial_rows(Connection& connection, std::string_view table, std::int64_t schema_version) {
  std::vector<std::int64_t> winners;
  {
    Statement unpacked = connection.prepare("SELECT winner FROM tuning WHERE length(trials) = 0");
    while (unpacked.step()) unpacked.read(winners.emplace_back());
  }
  Statement update = connection.prepare(
      "UPDATE tuning SET trial_count = ?, trial_bytes = ?, trials = ? WHERE winner = ? AND length(trials) = 0");
  for (const std::int64_t winner : winners) {
    const std::vector<TrialRecord> trials = read_trial_rows(connection, table, winner, schema_version);
    const Packed packed = pack_trials(trials);
    update.bind(static_cast<std::int64_t>(trials.size())).bind(packed.bytes).bind(std::span(packed.data));
    update.bind(winner).run();
  }
}

}  // namespace hone::cache
