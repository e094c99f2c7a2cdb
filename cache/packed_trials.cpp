#include "cache/packed_trials.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <stdexcept>
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

/// Receives the values of a packed array. There is never a Json array, whose destructor allocates and so ends the
/// process where memory is short.
class TrialReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<TrialRecord> trials;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return false; }
  bool key(string_t&) override { return false; }
  bool end_object() override { return false; }
  bool start_array(std::size_t) override { return ++depth_ <= 2; }
  bool end_array() override {
    if (depth_-- == 1) return true;
    std::size_t next = 0;
    each_field(trials.emplace_back(), [&](std::string_view, auto& value) { read(values_.at(next++), value); });
    values_.clear();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool add(Json value) {
    values_.push_back(std::move(value));
    return depth_ == 2;
  }

  int depth_ = 0;
  std::vector<Json> values_;  ///< of the trial
};

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace

Packed pack_trials(const std::vector<TrialRecord>& trials) {
  std::string text = "[";
  for (const TrialRecord& trial : trials) {
    text += text.size() > 1 ? ",[" : "[";
    each_field(trial, [&](std::string_view, const auto& value) {
      if (text.back() != '[') text += ',';
      // A compiler's message that was cut short may end in half a letter.
      if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, bool>) text += value ? '1' : '0';
      else text += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
    });
    text += ']';
  }
  return pack(bytes_of(text + ']'));
}

std::optional<std::vector<TrialRecord>> unpack_trials(Packed packed) {
  const std::optional<std::vector<std::byte>> text = unpack(std::move(packed));
  if (!text) return std::nullopt;
  const auto* begin = reinterpret_cast<const char*>(text->data());
  TrialReader reader;
  try {
    if (!Json::sax_parse(begin, begin + text->size(), &reader)) return std::nullopt;
  } catch (const Json::exception&) {  // a value has another type
    return std::nullopt;
  } catch (const std::out_of_range&) {  // or is missing
    return std::nullopt;
  }
  return std::move(reader.trials);
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
