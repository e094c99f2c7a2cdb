#include "cache/schema.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cache/schema_statements.h"

namespace hone::cache {
namespace {

/// A statement of an earlier version: that of a later one, but for texts and what was there instead.
std::string replaced(std::string_view sql, std::initializer_list<std::array<std::string_view, 2>> texts) {
  std::string earlier(sql);
  for (const auto& [text, by] : texts) earlier.replace(earlier.find(text), text.size(), by);
  return earlier;
}

using Schema = std::vector<SchemaObject>;

/// The objects of an earlier version: those of a later one, but for the statements of `others`.
Schema replaced(Schema objects, std::initializer_list<SchemaObject> others) {
  for (const SchemaObject& other : others)
    *std::find_if(objects.begin(), objects.end(),
                  [&](const SchemaObject& object) { return object.name == other.name; }) = other;
  return objects;
}

/// The objects of an earlier version, with one that later ones do not have behind the table `before`.
Schema with(Schema objects, std::string_view before, const SchemaObject& added) {
  const auto place = std::find_if(objects.begin(), objects.end(),
                                  [&](const SchemaObject& object) { return object.name == before; });
  objects.insert(place + 1, added);
  return objects;
}

/// The objects of an earlier version, without one that a later one added.
Schema without(Schema objects, std::string_view added) {
  std::erase_if(objects, [&](const SchemaObject& object) { return object.name == added; });
  return objects;
}

/// How views say how large code is.
constexpr std::string_view kUnpackedBytes = "max(b.bytes, length(b.code))";

struct Versions {
  // Up to version 7 code was stored as it is, and each trial was a row.
  const std::string binary7 = replaced(kBinary, {{",\n  bytes INTEGER NOT NULL DEFAULT 0", ""}});
  const std::string tuning7 = replaced(kTuning, {{",\n  trial_count INTEGER NOT NULL DEFAULT 0,\n  trial_bytes INTEGER "
                                                  "NOT NULL DEFAULT 0,\n  trials BLOB NOT NULL DEFAULT x''",
                                                  ""}});
  const std::string winners7 = replaced(
      kWinners, {{kUnpackedBytes, "length(b.code)"}, {"binary_bytes,\n       u.used_at", "binary_bytes, u.used_at"}});
  const std::string binaries7 = replaced(
      kBinaries, {{kUnpackedBytes, "length(b.code)"}, {"\n       length(b.code) AS stored_bytes,", ""}});
  // Up to version 6 neither the lender nor the order of measuring was stored.
  const std::string winner6 = replaced(kWinner, {{"  lender TEXT NOT NULL DEFAULT '',\n", ""}});
  const std::string winners6 = replaced(
      winners7, {{"w.has_extents AND w.lender = ''", "w.has_extents"}, {" nullif(w.lender, '') AS lender,", ""}});
  const std::string trial6 = replaced(kTrial7, {{"  sequence INTEGER NOT NULL DEFAULT 0,\n", ""}});
  const std::string trials6 =
      replaced(kTrials7, {{"r.sequence, ", ""}, {"energy_spread_uj,\n      ", "energy_spread_uj,"}});
  // Up to version 5 everything was chosen by its time.
  static constexpr std::array<std::string_view, 2> kNoColumn{"  objective TEXT NOT NULL DEFAULT 'time',\n", ""};
  static constexpr std::array<std::string_view, 2> kNoKey{", last2, objective)", ", last2)"};
  const std::string winner5 = replaced(winner6, {kNoColumn, kNoKey});
  const std::string missed5 = replaced(kMissed, {kNoColumn, kNoKey});
  const std::string claim5 = replaced(kClaim, {kNoColumn, kNoKey});
  const std::string tuning5 = replaced(tuning7, {{",\n  power_limit_w REAL NOT NULL DEFAULT 0", ""}});
  const std::string trial5 = replaced(
      trial6, {{"  energy_uj REAL NOT NULL DEFAULT 0,\n  energy_spread_uj REAL NOT NULL DEFAULT 0,\n", ""}});
  const std::string winners5 =
      replaced(winners6, {{"w.objective, ", ""}, {" AND m.objective = w.objective\n                ", ""}});
  const std::string trials5 = replaced(trials6, {{"w.objective, r.energy_uj, r.energy_spread_uj, ", ""}});
  const std::string misses5 = replaced(kMisses, {{"m.objective, ", ""}});
  const std::string claims5 = replaced(kClaims, {{"c.objective, ", ""}});
  // Up to version 3 binaries had no entries, and the column policy was called variant; version 1 kept binaries as long
  // as their winners.
  const std::string binary3 = replaced(binary7, {{",\n  entries TEXT NOT NULL DEFAULT ''", ""}});
  const std::string winner3 = replaced(winner5, {{"policy", "variant"}});
  const std::string winner1 = replaced(winner3, {{"binary TEXT NOT NULL", "binary TEXT NOT NULL REFERENCES binary"}});
  const std::string trial3 = replaced(trial5, {{"policy", "variant"}});
  const std::string winners3 = replaced(winners5, {{"policy", "variant"}});
  const std::string trials3 = replaced(trials5, {{"policy", "variant"}});

  const Schema version9{
      {"table", "device", kDevice},
      {"table", "toolchain", kToolchain},
      {"table", "binary", kBinary},
      {"table", "winner", kWinner},
      {"index", "winner_binary", kWinnerBinary},
      {"table", "tuning", kTuning},
      {"table", "usage", kUsage},
      {"table", "missed", kMissed},
      {"table", "claim", kClaim},
      {"table", "property", kProperty},
      {"table", "limits", kLimits},
      {"view", "winners", kWinners},
      {"view", "trials", kTrials},
      {"view", "binaries", kBinaries},
      {"view", "misses", kMisses},
      {"view", "claims", kClaims},
  };
  const Schema version8 = without(version9, "limits");
  const Schema version7 = with(replaced(version8, {{"table", "binary", binary7},
                                                    {"table", "tuning", tuning7},
                                                    {"view", "winners", winners7},
                                                    {"view", "trials", kTrials7},
                                                    {"view", "binaries", binaries7}}),
                               "tuning", {"table", "trial", kTrial7});
  const Schema version6 = replaced(version7, {{"table", "winner", winner6},
                                               {"table", "trial", trial6},
                                               {"view", "winners", winners6},
                                               {"view", "trials", trials6}});
  // Version 4 has other words than version 5 in the column numerics.
  const Schema version5 = replaced(version6, {{"table", "winner", winner5},
                                               {"table", "tuning", tuning5},
                                               {"table", "trial", trial5},
                                               {"table", "missed", missed5},
                                               {"table", "claim", claim5},
                                               {"view", "winners", winners5},
                                               {"view", "trials", trials5},
                                               {"view", "misses", misses5},
                                               {"view", "claims", claims5}});
  const Schema version3 = replaced(version5, {{"table", "binary", binary3},
                                               {"table", "winner", winner3},
                                               {"table", "trial", trial3},
                                               {"view", "winners", winners3},
                                               {"view", "trials", trials3}});
  const Schema version2 = replaced(version3, {{"view", "winners", kWinners2}});
  const Schema version1{
      {"table", "device", kDevice},
      {"table", "toolchain", kToolchain},
      {"table", "binary", binary3},
      {"table", "winner", winner1},
      {"index", "winner_binary", kWinnerBinary},
      {"table", "tuning", tuning5},
      {"table", "trial", trial3},
      {"view", "winners", kWinners1},
      {"view", "trials", trials3},
  };
};

}  // namespace

std::span<const SchemaObject> schema_objects(std::int64_t version) {
  static const Versions& all = *new Versions;  // never destroyed: a static Session writes its notes after main()
  if (version == 1) return all.version1;
  if (version == 2) return all.version2;
  if (version == 3) return all.version3;
  if (version == 4 || version == 5) return all.version5;
  if (version == 6) return all.version6;
  if (version == 7) return all.version7;
  if (version == 8) return all.version8;
  if (version == 9) return all.version9;
  return {};
}

}  // namespace hone::cache
