#include "tuner/cache/exchange_lines.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

#include "cache/digest.h"
#include "cache/fields.h"
#include "cache/numerics_words.h"
#include "cache/shipped_winners.h"
#include "tuner/text/base64.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;
using cache::each_field;
using cache::Entry;

// --- writing ---

struct FieldWriter {
  Json& object;

  void operator()(std::string_view name, double value) const {
    object[std::string(name)] = std::isfinite(value) ? Json(value) : Json(nullptr);
  }
  void operator()(std::string_view name, const std::vector<std::byte>& value) const {
    object[std::string(name)] = base64(value);
  }
  void operator()(std::string_view name, const auto& value) const { object[std::string(name)] = value; }
};

template <class Record>
Json to_json(const Record& record) {
  Json object = Json::object();
  each_field(record, FieldWriter{object});
  return object;
}

/// Covers everything in the line, also what is for people.
std::string line_digest(const Entry& entry) {
  const cache::DeviceRecord& device = entry.key.device;
  cache::Digest digest;
  digest.add("entry", std::string_view(cache::entry_digest(entry))).add("name", std::string_view(device.name));
  digest.add("sm_count", std::int64_t{device.sm_count});
  digest.add("max_threads_per_sm", std::int64_t{device.max_threads_per_sm});
  return digest.add("peak_bandwidth_gbps", device.peak_bandwidth_gbps).hex();
}

Json to_json(const Entry& entry) {
  Json object{{"device", to_json(entry.key.device)},
              {"toolchain", to_json(entry.key.toolchain)},
              {"problem", to_json(entry.key.problem)},
              {"chosen", to_json(entry.winner)},
              {"created_at", entry.created_at},
              {"binary", entry.binary},
              {"tuning", nullptr},
              {"digest", line_digest(entry)}};
  if (!entry.tuning) return object;
  object["tuning"] = to_json(*entry.tuning);
  Json& trials = object["tuning"]["trials"] = Json::array();
  for (const cache::TrialRecord& trial : entry.tuning->trials) trials.push_back(to_json(trial));
  return object;
}

struct LineWriter {
  Json operator()(const HeaderLine& header) const {
    return {{"hone_cache_export", kExchangeFormat}, {"binaries", header.binaries}};
  }
  Json operator()(const BinaryLine& line) const {
    Json object = to_json(line.binary);
    object["digest"] = line.digest;
    return {{"binary", std::move(object)}};
  }
  Json operator()(const Entry& entry) const { return {{"winner", to_json(entry)}}; }
  Json operator()(const EndLine& end) const {
    return {{"end", {{"binaries", end.binaries}, {"winners", end.winners}}}};
  }
};

// --- reading ---

/// An object whose members are taken one after the other; in the end none may be left.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string_view name) : object_(object), name_(name) {
    if (!object.is_object()) throw LineError(fmt::format("'{}' is no object", name));
  }

  bool has(std::string_view name) const { return object_.contains(std::string(name)); }

  const Json& take(std::string_view name) {
    auto found = object_.find(std::string(name));
    // Format 1 had another name for it.
    if (found == object_.end() && name == "policy") found = object_.find("variant");
    if (found == object_.end()) throw LineError(fmt::format("'{}' has no '{}'", name_, name));
    ++taken_;
    return *found;
  }

  void finish() const {
    if (object_.size() == taken_) return;
    throw LineError(fmt::format("'{}' has {} members, {} are known", name_, object_.size(), taken_));
  }

  [[noreturn]] void reject(std::string_view name, const Json& json, std::string_view expected) const {
    const std::string value = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    throw LineError(fmt::format("'{}' of '{}' is {}, not {}", name, name_, truncate(printable(value), 40), expected));
  }

  void read(std::string_view name, std::string& value) {
    const Json& json = take(name);
    if (!json.is_string()) reject(name, json, "a string");
    value = json.get<std::string>();
  }

  void read(std::string_view name, bool& value) {
    const Json& json = take(name);
    if (!json.is_boolean()) reject(name, json, "true or false");
    value = json.get<bool>();
  }

  /// Counts and sizes: no number of a cache is negative.
  template <std::integral Integer>
  void read(std::string_view name, Integer& value) {
    const Json& json = take(name);
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > kMax) {
      reject(name, json, fmt::format("a whole number from 0 to {}", kMax));
    }
    value = static_cast<Integer>(json.get<std::uint64_t>());
  }

  /// Null is what is not a number.
  void read(std::string_view name, double& value) {
    const Json& json = take(name);
    if (!json.is_null() && !json.is_number()) reject(name, json, "a number or null");
    value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  }

  void read(std::string_view name, std::vector<std::byte>& value) {
    const Json& json = take(name);
    std::optional<std::vector<std::byte>> bytes;
    if (json.is_string()) bytes = from_base64(json.get_ref<const std::string&>());
    if (!bytes) reject(name, json, "base64");
    value = *std::move(bytes);
  }

 private:
  const Json& object_;
  std::string_view name_;
  std::size_t taken_ = 0;
};

/// Members that earlier formats had not: those of format 4 had no lender and no sequence, of format 3 no objective and
/// no energy, of format 1 no entries.
bool is_new_member(std::string_view name) {
  return name == "objective" || name == "energy_uj" || name == "energy_spread_uj" || name == "power_limit_w" ||
         name == "entries" || name == "lender" || name == "sequence";
}

struct FieldReader {
  ObjectReader& object;

  void operator()(std::string_view name, auto& value) const {
    if (object.has(name) || !is_new_member(name)) object.read(name, value);
  }
};

template <class Record>
Record read_record(const Json& json, std::string_view name) {
  Record record;
  ObjectReader object(json, name);
  each_field(record, FieldReader{object});
  object.finish();
  return record;
}

cache::TuningRecord read_tuning(const Json& json) {
  cache::TuningRecord tuning;
  ObjectReader object(json, "tuning");
  each_field(tuning, FieldReader{object});
  const Json& trials = object.take("trials");
  if (!trials.is_array()) throw LineError("'trials' of 'tuning' is no list");
  for (const Json& trial : trials) tuning.trials.push_back(read_record<cache::TrialRecord>(trial, "trial"));
  object.finish();
  return tuning;
}

/// Refuses what the file's own constraints would refuse without naming the line.
void check_entry(const Entry& entry) {
  for (const cache::RangeRecord& range : entry.key.problem.sizes) {
    if (range.first > range.last) {
      throw LineError(fmt::format("the winner serves sizes from {} to {}, which are none", range.first, range.last));
    }
  }
  const auto require = [](double value, std::string_view name) {
    if (!std::isfinite(value)) throw LineError(fmt::format("'{}' of the winner is not a number", name));
  };
  require(entry.key.device.peak_bandwidth_gbps, "peak_bandwidth_gbps");
  require(entry.winner.median_us, "median_us");
  require(entry.winner.spread_us, "spread_us");
  if (!entry.tuning) return;
  require(entry.tuning->compile_ms, "compile_ms");
  require(entry.tuning->measure_ms, "measure_ms");
  require(entry.tuning->power_limit_w, "power_limit_w");
  for (const cache::TrialRecord& trial : entry.tuning->trials)
    require(trial.energy_uj + trial.energy_spread_uj, "energy_uj");
}

Entry read_entry(const Json& json) {
  Entry entry;
  ObjectReader object(json, "winner");
  entry.key.device = read_record<cache::DeviceRecord>(object.take("device"), "device");
  entry.key.toolchain = read_record<cache::ToolchainRecord>(object.take("toolchain"), "toolchain");
  entry.key.problem = read_record<cache::ProblemRecord>(object.take("problem"), "problem");
  entry.winner = read_record<cache::WinnerRecord>(object.take("chosen"), "chosen");
  object.read("created_at", entry.created_at);
  object.read("binary", entry.binary);
  const Json& tuning = object.take("tuning");
  if (!tuning.is_null()) entry.tuning = read_tuning(tuning);
  std::string digest;
  object.read("digest", digest);
  object.finish();
  check_entry(entry);
  std::string& numerics = entry.key.problem.numerics;
  if (digest != line_digest(entry)) numerics = cache::renamed_numerics(numerics);  // formats 1 and 2 had another word
  if (digest != line_digest(entry))
    throw LineError("the digest of the winner does not hold: it was changed or damaged");
  return entry;
}

HeaderLine read_header(const Json& json) {
  const Json& format = json.at("hone_cache_export");
  if (!format.is_number_unsigned() || format.get<std::uint64_t>() - 1 >= kExchangeFormat) {
    throw LineError(fmt::format("the export has the format {}, this Hone knows 1 to {}; use a newer one",
                                truncate(format.dump(), 20), kExchangeFormat));
  }
  HeaderLine header;
  ObjectReader object(json, "header");
  object.take("hone_cache_export");
  object.read("binaries", header.binaries);
  object.finish();
  return header;
}

BinaryLine read_binary(const Json& json) {
  BinaryLine line;
  ObjectReader object(json, "binary");
  each_field(line.binary, FieldReader{object});
  object.read("digest", line.digest);
  object.finish();
  return line;
}

EndLine read_end(const Json& json) {
  EndLine end;
  ObjectReader object(json, "end");
  object.read("binaries", end.binaries);
  object.read("winners", end.winners);
  object.finish();
  return end;
}

std::size_t count_members(const Json& json) {
  std::size_t count = json.is_object() ? json.size() : 0;
  if (json.is_structured()) {
    for (const Json& part : json) count += count_members(part);
  }
  return count;
}

/// As deep as a trial stands in a line.
constexpr int kMaxDepth = 5;

/// Several times what any object of an export has. Looking for a name takes as long as the object has members.
constexpr std::size_t kMaxMembers = 64;

/// Several times what a tuning of the largest space has. In memory a value takes far more than in its line.
constexpr std::size_t kMaxValues = std::size_t{1} << 20;

Json parse_json(std::string_view text) {
  std::size_t members = 0, values = 0;
  std::array<std::size_t, kMaxDepth + 2> members_at{};  // of the object that is open at a depth
  const auto watch = [&](int depth, Json::parse_event_t event, Json&) {
    const std::size_t level = static_cast<std::size_t>(std::clamp(depth, 0, kMaxDepth + 1));
    if (event == Json::parse_event_t::object_start && level + 1 < members_at.size()) members_at[level + 1] = 0;
    if (event == Json::parse_event_t::key) {
      ++members;
      if (++members_at[level] > kMaxMembers) throw LineError("an object has more members than any of an export");
    }
    if (++values > kMaxValues) throw LineError("it holds more values than any line of an export");
    if (depth > kMaxDepth) throw LineError("it is nested deeper than any line of an export");
    return true;
  };
  try {
    Json json = Json::parse(text, watch);
    // Only one is left of two members with one name.
    if (count_members(json) != members) throw LineError("a name stands twice in one object");
    return json;
  } catch (const Json::parse_error& error) {
    if (error.byte > text.size())
      throw LineError("the line ends in the middle of a JSON object: the file is truncated");
    if (text.starts_with(cache::kShippedBegin))
      throw LineError("it is a text of winners to ship, which HONE_CACHE_PATH may name; what hone cache export writes "
                      "without --text is imported");
    if (text.starts_with("SQLite format 3")) throw LineError("it is a cache file, which hone cache merge takes");
    throw LineError(fmt::format("byte {} is no JSON (NaN and infinities are not, either)", error.byte));
  } catch (const Json::out_of_range&) {
    throw LineError("a number is larger than any double");
  }
}

}  // namespace

std::optional<std::string> to_line(const ExchangeLine& line) {
  try {
    return std::visit(LineWriter{}, line).dump();
  } catch (const Json::type_error&) {
    return std::nullopt;
  }
}

ExchangeLine parse_line(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) throw LineError("it begins with a byte order mark, which no export has");
  const Json json = parse_json(text);
  if (json.is_object() && json.contains("hone_cache_export")) return read_header(json);
  if (!json.is_object() || json.size() != 1) throw LineError("it is no object with one member: binary, winner or end");
  const auto member = json.begin();
  if (member.key() == "binary") return read_binary(member.value());
  if (member.key() == "winner") return read_entry(member.value());
  if (member.key() == "end") return read_end(member.value());
  throw LineError(fmt::format("'{}' is neither binary, winner nor end", truncate(printable(member.key()), 40)));
}

}  // namespace hone::tuner
