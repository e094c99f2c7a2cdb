#include "tuner/cache/exchange_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

#include "cache/rows.h"
#include "tests/cache/maintenance/maintenance_fixture.h"
#include "tests/support/names.h"

namespace hone::tuner {
namespace {

using cache::Entry;
using ::testing::HasSubstr;
using test::Names;
using Json = nlohmann::ordered_json;

Entry sample() { return cache::entry_of(cache::sample_publication(), 1'700'000'000); }

std::string error_of(const std::string& line) {
  try {
    parse_line(line);
  } catch (const LineError& error) {
    return error.what();
  }
  return "it was read";
}

TEST(ExchangeLines, WinnerComesBack) {
  Entry entry = sample();
  entry.key.device.name = "quote \" backslash \\ line \n nul \0 \xc3\xa9";
  entry.winner.median_us = 0.1;
  entry.winner.bytes_moved = std::numeric_limits<std::int64_t>::max();
  const std::optional<std::string> line = to_line(entry);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->find('\n'), std::string::npos);
  const auto back = std::get<Entry>(parse_line(*line));
  EXPECT_EQ(cache::entry_digest(back), cache::entry_digest(entry));
  EXPECT_EQ(back.key.device, entry.key.device);
  EXPECT_EQ(to_line(back), line) << "an export of an import is the same";
}

TEST(ExchangeLines, UntunedWinnerAndTimesThatAreNoneComeBack) {
  Entry entry = sample();
  entry.tuning->trials[1].median_us = std::nan("");
  entry.tuning->trials[1].predicted_us = std::numeric_limits<double>::infinity();
  const auto back = std::get<Entry>(parse_line(*to_line(entry)));
  EXPECT_TRUE(std::isnan(back.tuning->trials[1].median_us));
  EXPECT_TRUE(std::isnan(back.tuning->trials[1].predicted_us));
  entry.tuning.reset();
  EXPECT_FALSE(std::get<Entry>(parse_line(*to_line(entry))).tuning);
}

TEST(ExchangeLines, OtherLinesComeBack) {
  EXPECT_FALSE(std::get<HeaderLine>(parse_line(*to_line(HeaderLine{false}))).binaries);
  const EndLine end = std::get<EndLine>(parse_line(*to_line(EndLine{3, 4})));
  EXPECT_EQ(end.binaries, 3);
  EXPECT_EQ(end.winners, 4);
  const BinaryLine binary{"abc", cache::sample_publication().binary};
  const auto back = std::get<BinaryLine>(parse_line(*to_line(binary)));
  EXPECT_EQ(back.digest, "abc");
  EXPECT_EQ(back.binary, binary.binary);
}

TEST(ExchangeLines, AByteOrderMarkIsRefused) {
  EXPECT_THAT(error_of("\xEF\xBB\xBF" + *to_line(HeaderLine{false})), Names("byte order mark"));
}

TEST(ExchangeLines, EntriesOfABinaryComeBack) {
  BinaryLine binary{"abc", cache::sample_publication().binary};
  binary.binary.entries = "_Z5firstv\nsecond";
  EXPECT_EQ(std::get<BinaryLine>(parse_line(*to_line(binary))).binary, binary.binary);
}

TEST(ExchangeLines, LinesOfFormat1AreRead) {
  EXPECT_FALSE(std::get<HeaderLine>(parse_line(R"({"hone_cache_export":1,"binaries":false})")).binaries);
  Json winner = Json::parse(*to_line(sample()));
  const auto rename = [](Json& candidate) {
    candidate["variant"] = candidate["policy"];
    candidate.erase("policy");
  };
  rename(winner["winner"]["chosen"]);
  for (Json& trial : winner["winner"]["tuning"]["trials"]) rename(trial);
  winner["winner"]["chosen"].erase("lender");
  const auto back = std::get<Entry>(parse_line(winner.dump()));
  EXPECT_EQ(cache::entry_digest(back), cache::entry_digest(sample()));
  winner["winner"]["chosen"]["policy"] = "of both names";
  EXPECT_THAT(error_of(winner.dump()), Names("16 members"));
  winner["winner"]["chosen"].erase("policy");
  winner["winner"]["chosen"]["variant"] = 3;
  EXPECT_THAT(error_of(winner.dump()), Names("string"));

  const BinaryLine binary{"abc", cache::sample_publication().binary};
  Json line = Json::parse(*to_line(binary));
  line["binary"].erase("entries");
  EXPECT_EQ(std::get<BinaryLine>(parse_line(line.dump())).binary, binary.binary);
}

TEST(ExchangeLines, WinnersOfFormat3WereChosenByTime) {
  Json winner = Json::parse(*to_line(sample()));
  winner["winner"]["problem"].erase("objective");
  winner["winner"]["tuning"].erase("power_limit_w");
  winner["winner"]["chosen"].erase("lender");
  for (Json& trial : winner["winner"]["tuning"]["trials"]) {
    trial.erase("energy_uj");
    trial.erase("energy_spread_uj");
    trial.erase("sequence");
  }
  const auto back = std::get<Entry>(parse_line(winner.dump()));
  EXPECT_EQ(back.key.problem.objective, "time");
  EXPECT_EQ(cache::entry_digest(back), cache::entry_digest(sample()));

  Entry by_energy = sample();
  by_energy.key.problem.objective = "energy";
  EXPECT_NE(cache::entry_digest(by_energy), cache::entry_digest(sample()));
  EXPECT_EQ(std::get<Entry>(parse_line(*to_line(by_energy))).key.problem, by_energy.key.problem);
}

TEST(ExchangeLines, TheLenderGoesWithTheWinner) {
  Entry lent = sample();
  lent.winner.lender = "alignment: reduce sum f32 n=512";
  EXPECT_NE(cache::entry_digest(lent), cache::entry_digest(sample()));
  EXPECT_EQ(std::get<Entry>(parse_line(*to_line(lent))).winner, lent.winner);
}

TEST(ExchangeLines, NumericsOfFormat2AreFastNow) {
  Entry entry = sample();
  for (const char* policy : {"", ", NaN ignored"}) {
    entry.key.problem.numerics = std::string("fast") + policy;
    Json winner = Json::parse(*to_line(entry));
    winner["winner"]["problem"]["numerics"] = std::string("reproducible") + policy;
    EXPECT_EQ(cache::entry_digest(std::get<Entry>(parse_line(winner.dump()))), cache::entry_digest(entry));
  }
  entry.key.problem.numerics = "reproducible";  // of today
  EXPECT_EQ(std::get<Entry>(parse_line(*to_line(entry))).key.problem.numerics, "reproducible");
}

TEST(ExchangeLines, TextThatIsNoUtf8HasNoLine) {
  Entry entry = sample();
  entry.key.problem.operation = "\xff";
  EXPECT_EQ(to_line(entry), std::nullopt);
}

TEST(ExchangeLines, LineMadeToTakeTimeOrMemoryIsRefusedSoon) {
  std::string members = "{\"winner\":{";
  for (int i = 0; i < 80'000; ++i) members += fmt::format("\"{}\":0,", i);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of(members + "\"x\":0}}"), Names("members"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << "3e9 comparisons take longer";
  std::string values = "{\"winner\":[";
  for (int i = 0; i < 2'000'000; ++i) values += "0,";
  EXPECT_THAT(error_of(values + "0]}"), Names("values"));
}

TEST(ExchangeLines, EveryTruncationIsRefused) {
  const std::string line = *to_line(sample());
  for (std::size_t size = 0; size < line.size(); ++size) {
    EXPECT_THAT(error_of(line.substr(0, size)), Names("truncated")) << size;
  }
}

TEST(ExchangeLines, ChangedFieldIsRefused) {
  const Json intact = Json::parse(*to_line(sample()));
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> changes{
      {[](Json& w) { w["chosen"]["registers"] = 33; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["device"]["name"] = "x"; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["device"]["sm_count"] = 1; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["device"]["max_threads_per_sm"] = 1; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["device"]["peak_bandwidth_gbps"] = 1; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["tuning"]["trials"].erase(1); }, "the digest of the winner does not hold"},
      {[](Json& w) { w["tuning"] = nullptr; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["digest"] = ""; }, "the digest of the winner does not hold"},
      {[](Json& w) { w["chosen"].erase("registers"); }, "'chosen' has no 'registers'"},
      {[](Json& w) { w["chosen"]["more"] = 1; }, "'chosen' has 17 members, 16 are known"},
      {[](Json& w) { w["more"] = 1; }, "'winner' has 9 members, 8 are known"},
      {[](Json& w) { w["tuning"]["more"] = 1; }, "'tuning' has 7 members, 6 are known"},
      {[](Json& w) { w["chosen"]["registers"] = "32"; },
       "'registers' of 'chosen' is \"32\", not a whole number from 0 to 2147483647"},
      {[](Json& w) { w["chosen"]["registers"] = -1; }, "not a whole number from 0"},
      {[](Json& w) { w["chosen"]["registers"] = 1.5; }, "not a whole number from 0"},
      {[](Json& w) { w["chosen"]["registers"] = 4294967296; }, "not a whole number from 0"},
      {[](Json& w) { w["chosen"]["bytes_moved"] = 9223372036854775808u; }, "not a whole number from 0"},
      {[](Json& w) { w["chosen"]["policy"] = 1; }, "'policy' of 'chosen' is 1, not a string"},
      {[](Json& w) { w["chosen"]["tuned"] = 1; }, "not true or false"},
      {[](Json& w) { w["chosen"]["median_us"] = "fast"; }, "not a number or null"},
      {[](Json& w) { w["chosen"]["median_us"] = nullptr; }, "'median_us' of the winner is not a number"},
      {[](Json& w) { w["chosen"]["spread_us"] = nullptr; }, "'spread_us' of the winner is not a number"},
      {[](Json& w) { w["device"]["peak_bandwidth_gbps"] = nullptr; }, "'peak_bandwidth_gbps' of the winner"},
      {[](Json& w) { w["tuning"]["compile_ms"] = nullptr; }, "'compile_ms' of the winner is not a number"},
      {[](Json& w) { w["tuning"]["measure_ms"] = nullptr; }, "'measure_ms' of the winner is not a number"},
      {[](Json& w) { w["tuning"]["trials"][0]["energy_uj"] = nullptr; }, "'energy_uj' of the winner is not"},
      {[](Json& w) { w["problem"]["last0"] = 0; }, "serves sizes from 1 to 0, which are none"},
      {[](Json& w) { w["tuning"]["trials"] = 3; }, "'trials' of 'tuning' is no list"},
      {[](Json& w) { w["tuning"]["trials"][0] = 3; }, "'trial' is no object"},
      {[](Json& w) { w["tuning"] = 3; }, "'tuning' is no object"},
      {[](Json& w) { w = 3; }, "'winner' is no object"},
      {[](Json& w) {
         w["chosen"]["policy"] = Json{{"a", {{"b", {{"c", 1}}}}}};
       },
       "nested deeper"},
  };
  for (const auto& [change, words] : changes) {
    Json changed = intact;
    change(changed["winner"]);
    EXPECT_THAT(error_of(changed.dump()), HasSubstr(words));
  }
}

TEST(ExchangeLines, WhatIsNoLineOfAnExportIsRefused) {
  const std::string digest(32, '0');
  const std::vector<std::pair<std::string, std::string>> lines{
      {"", "truncated"},
      {"null", "no object with one member"},
      {"[]", "no object with one member"},
      {"{}", "no object with one member"},
      {"3", "no object with one member"},
      {R"({"end":{"binaries":0,"winners":0},"winner":1})", "no object with one member"},
      {R"({"winer":1})", "'winer' is neither binary, winner nor end"},
      {R"({"end":{"binaries":0,"winners":0}} )"
       "x",
       "is no JSON"},
      {R"({"end":{"binaries":0,"binaries":0,"winners":0}})", "a name stands twice"},
      {R"({"end":{"binaries":NaN,"winners":0}})", "is no JSON (NaN and infinities are not, either)"},
      {R"({"end":{"binaries":-Infinity,"winners":0}})", "is no JSON"},
      {R"({"end":{"binaries":1e999,"winners":0}})", "larger than any double"},
      {R"({"end":{"binaries":0}})", "'end' has no 'winners'"},
      {R"({"hone_cache_export":6,"binaries":true})", "has the format 6, this Hone knows 1 to 5; use a newer one"},
      {R"({"hone_cache_export":0,"binaries":true})", "has the format 0"},
      {R"({"hone_cache_export":"1","binaries":true})", "this Hone knows 1 to 5"},
      {R"({"hone_cache_export":1})", "'header' has no 'binaries'"},
      {R"({"hone_cache_export":1,"binaries":true,"x":1})", "'header' has 3 members"},
      {R"({"binary":{"format":"cubin","architecture":"sm_90","code":"!","digest":"0"}})", "not base64"},
      {R"({"binary":{"format":"cubin","architecture":"sm_90","code":7,"digest":"0"}})", "not base64"},
      {"[[[[[[[[1]]]]]]]]", "nested deeper"},
      {"\xff\xfe", "is no JSON"},
      {"hone_winners 1", "HONE_CACHE_PATH"},
      {std::string("SQLite format 3\0\x10", 17), "hone cache merge"},
  };
  for (const auto& [line, words] : lines) EXPECT_THAT(error_of(line), HasSubstr(words)) << line;
}

TEST(ExchangeLines, DeepNestingEndsWithoutDeepRecursion) {
  EXPECT_THAT(error_of(std::string(1'000'000, '[')), Names("nested", "deeper"));
}

}  // namespace
}  // namespace hone::tuner
