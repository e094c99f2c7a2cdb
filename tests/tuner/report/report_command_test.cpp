#include <algorithm>
#include <fstream>

#include "tests/cache/support.h"
#include "tests/support/names.h"
#include "tests/tuner/report/report_fixture.h"
#include "tuner/report/report_data.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using test::Names;
using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kMostBytes = 2'000'000;
constexpr std::size_t kMedianColumn = 20;  ///< of the rows of `winners`
constexpr std::size_t kBytesColumn = 19;

json row_of(const json& data, std::int64_t id) {
  for (const json& row : data["winners"])
    if (row[0] == id) return row;
  return nullptr;
}

TEST_F(ReportTest, IsOneFileThatLoadsNothing) {
  fill();
  const std::string html = page();
  EXPECT_LT(html.size(), kMostBytes);
  for (const char* elsewhere : {"http://", "https://", "src=", "@import", "url("}) {
    std::string without_names = html;
    const std::string svg = "http://www.w3.org/2000/svg";  // a name, which nobody loads
    for (std::size_t at; (at = without_names.find(svg)) != std::string::npos;) without_names.erase(at, svg.size());
    EXPECT_THAT(without_names, Not(HasSubstr(elsewhere)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("{{")));
}

TEST_F(ReportTest, HasTheFiguresOfInspect) {
  fill();
  const json data = data_of(page());
  const json inspected = json::parse(hone({"inspect", "--json"}).out)["winners"];
  ASSERT_EQ(data["winners"].size(), inspected.size());
  int measured = 0;
  for (const json& winner : inspected) {
    const json row = row_of(data, winner["id"]);
    ASSERT_FALSE(row.is_null());
    EXPECT_EQ(data["texts"][row[11].get<std::size_t>()], winner["how"]);
    EXPECT_EQ(data["texts"][row[12].get<std::size_t>()], winner["candidate"]["policy"]);
    if (winner["median_us"].is_null()) {
      EXPECT_EQ(row[kMedianColumn], 0);
      continue;
    }
    ++measured;
    EXPECT_EQ(row[kMedianColumn], winner["median_us"]);
    EXPECT_EQ(row[kBytesColumn], winner["bytes_moved"]);
  }
  EXPECT_EQ(measured, 20);
  EXPECT_EQ(data["tunings"].size(), 20U);
}

TEST_F(ReportTest, EveryTuningHasItsTrialsReasonsAndLimit) {
  store_.publish(tuned_sum(28));
  const json tuning = data_of(page())["tunings"][0];
  EXPECT_EQ(tuning[1], 6);
  EXPECT_EQ(tuning[6].size(), 6U);
  EXPECT_EQ(tuning[7].size(), 2U);
  const json texts = data_of(page())["texts"];
  EXPECT_EQ(texts[tuning[5][0].get<std::size_t>()], "memory bandwidth");
  EXPECT_EQ(tuning[6][0][11], 1) << "the winner is marked";
  EXPECT_EQ(tuning[6].back()[11], 2) << "and the model's first choice";
}

TEST_F(ReportTest, ShowsWhatTheOptionsName) {
  fill();
  EXPECT_EQ(data_of(page({"--op", "max"}))["winners"].size(), 10U);
  EXPECT_EQ(data_of(page({"--dtype", "f16", "--op", "sum"}))["winners"].size(), 5U);
  EXPECT_EQ(data_of(page({"--device", "sm_90"}))["winners"].size(), 25U);
  EXPECT_THAT(hone({"report", "-o", page_.string(), "--device", "host"}).err, Names("25"));
  EXPECT_EQ(hone({"report", "--dtype", "f99"}).code, 2);
}

TEST_F(ReportTest, WritesToStandardOutput) {
  fill();
  const CommandRun run = hone({"report", "-o", "-"});
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(run.out.starts_with("<!doctype html>"));
  EXPECT_TRUE(run.out.ends_with("</html>\n"));
}

TEST_F(ReportTest, AnEmptyCacheIsAPageThatSaysSo) {
  EXPECT_EQ(data_of(page())["winners"].size(), 0U);
  EXPECT_THAT(hone({"report", "-o", page_.string()}).err, Names(path_.string(), "hone tune"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ReportTest, DamagedTrialsAreLeftOutAndCounted) {
  fill();
  cache::sql(path_, "UPDATE tuning SET trial_bytes = 1 WHERE winner = 1");
  cache::sql(path_, "UPDATE winner SET median_us = 1 WHERE id = 2");
  const CommandRun run = hone({"report", "-o", page_.string()});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("1 winner", "damaged", "hone cache verify"));
  const json data = data_of(page());
  EXPECT_EQ(data["winners"].size(), 24U);
  EXPECT_EQ(data["tunings"].size(), 18U);
  EXPECT_EQ(data["caches"][0]["damaged"], 1);
  EXPECT_EQ(data["caches"][0]["damaged_winners"], 1);
}

TEST_F(ReportTest, OfDamagedWinnersAloneLeavesTheEarlierPage) {
  fill();
  hone({"report", "-o", page_.string()});
  const auto before = cache::read_bytes(page_);
  cache::sql(path_, "UPDATE winner SET registers = registers + 1");
  const CommandRun run = hone({"report", "-o", page_.string()});
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, Names(path_.string(), "winners are damaged"));
  EXPECT_TRUE(cache::read_bytes(page_) == before);
}

TEST_F(ReportTest, MarkupAndTerminalEscapesAreText) {
  cache::Publication publication = tuned_sum(20, "</script><script>alert(1)</script>");
  publication.key.device.name = "GPU\x1b[31m<img src=x onerror=alert(1)>";
  publication.tuning->trials.back().reason = "<!--\x07{{data}}\xff";
  store_.publish(publication);
  const std::string html = page();
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  const json data = data_of(html);
  EXPECT_EQ(data["devices"][0]["name"], "GPU?[31m<img src=x onerror=alert(1)>");
  EXPECT_EQ(data["problems"][0][2], "</script><script>alert(1)</script>");
}

TEST_F(ReportTest, TheOldPageStaysWhereTheNewOneCannotBeWritten) {
  fill();
  const CommandRun run = hone({"report", "-o", (folder_ / "missing/report.html").string()});
  EXPECT_EQ(run.code, 4);
  EXPECT_THAT(run.err, Names("missing/report.html"));
  testing::write_file(page_, "yesterday's");
  {
    cache::FileSizeLimit full(4096);
    EXPECT_EQ(hone({"report", "-o", page_.string()}).code, 4);
  }
  std::ifstream in(page_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "yesterday's");
  EXPECT_EQ(hone({"report", "-o", path_.string()}).code, 2);
  EXPECT_EQ(store_.winners().size(), 25U);
}

TEST_F(ReportTest, ComparesTwoCaches) {
  fill();
  const std::filesystem::path other = folder_ / "other.sqlite";
  cache::Publication faster = tuned_sum(20);
  faster.winner.median_us /= 2;
  cache::Store(other).publish(faster);
  const json data = data_of(page({"--compare", other.string()}));
  EXPECT_EQ(data["caches"].size(), 2U);
  EXPECT_EQ(data["devices"].size(), 2U);
  EXPECT_EQ(data["winners"].size(), 26U);
  EXPECT_EQ(data["devices"][0]["cache"].get<int>() + data["devices"][1]["cache"].get<int>(), 1);
}

TEST_F(ReportTest, ACacheOfAnotherSchemaIsRefusedOrRead) {
  fill();
  const std::filesystem::path other = folder_ / "other.sqlite";
  const auto compare = [&] { return hone({"report", "-o", page_.string(), "--compare", other.string()}); };
  EXPECT_EQ(compare().code, 4) << "there is none";
  testing::write_file(other, "no database, but long enough to be one for a reader that only looks at sizes");
  EXPECT_EQ(compare().code, 5);
  EXPECT_THAT(compare().err, Names(other.string()));
  std::filesystem::remove(other);
  cache::sql(other, "CREATE TABLE winner (id INTEGER PRIMARY KEY)");
  EXPECT_EQ(compare().code, 5);
  EXPECT_FALSE(std::filesystem::exists(page_));
  std::filesystem::remove(other);
  cache::make_fixture(other, 1);
  EXPECT_EQ(compare().code, 0) << "an earlier version is read as it is";
}

/// 10^5 winners of 50 operations: 2,000 tuned ones, of which the file has the trials of one for each operation.
ReportedCache large_cache(const std::filesystem::path& path) {
  std::vector<cache::Publication> publications;
  for (int i = 0; i < 50; ++i) publications.push_back(tuned_sum(20, "op" + std::to_string(i)));
  cache::Store(path).publish(publications);
  ReportedCache large{.path = path, .all = cache::Store(path).winners(), .named = {}};
  for (int i = 50; i < 100'000; ++i) {
    cache::StoredWinner winner = large.all[static_cast<std::size_t>(i % 50)];
    const std::int64_t first = 1000 + 10 * (i / 50);
    winner.id = i + 1;
    winner.key.problem.sizes[0] = {first, first + 9};
    winner.winner.tuned_extents = {first + 5, 1, 1};
    winner.winner.bytes_moved = 4 * first;
    if (i >= 2000) {
      winner.winner.tuned = false;
      winner.winner.median_us = winner.winner.spread_us = 0;
    }
    large.all.push_back(winner);
  }
  for (std::size_t i = 0; i < large.all.size(); ++i) large.named.push_back(i);
  return large;
}

TEST_F(ReportTest, OfALargeCacheTunedWinnersAndEveryOperationComeFirst) {
  constexpr std::size_t kRoom = 1'000'000;
  const std::vector<ReportedCache> caches{large_cache(path_)};
  const ReportData report = report_data(caches, 0, kRoom);
  EXPECT_LT(report.json.size(), kRoom * 21 / 20);
  EXPECT_EQ(report.counts[0].winners, 100'000U);
  EXPECT_LT(report.counts[0].shown_winners, 20'000U);
  EXPECT_EQ(report.counts[0].tunings, 2000U);
  EXPECT_EQ(report.counts[0].shown_tunings, 50U);
  const json data = json::parse(report.json);
  const auto tuned = std::count_if(data["winners"].begin(), data["winners"].end(),
                                   [](const json& row) { return row[kMedianColumn] > 0; });
  EXPECT_EQ(tuned, 2000);
}

TEST_F(ReportTest, SaysWhatItHadNoRoomFor) {
  const ReportedCache large = large_cache(path_);
  std::vector<cache::Publication> publications;
  for (const cache::StoredWinner& stored : large.all) {
    if (stored.id > 400) break;
    cache::Publication publication = tuned_sum(20, stored.key.problem.operation);
    publication.key = stored.key;
    publication.winner.tuned_extents = stored.winner.tuned_extents;
    publication.tuning->trials.resize(300, publication.tuning->trials[0]);
    for (std::size_t i = 0; i < 300; ++i)
      publication.tuning->trials[i].candidate.policy = "block_threads=" + std::to_string(stored.id * 300 + i);
    publications.push_back(std::move(publication));
    if (publications.size() < 40) continue;
    store_.publish(publications);  // few at a time: a slow machine would give up on all
    publications.clear();
  }
  store_.publish(publications);
  const CommandRun run = hone({"report", "-o", page_.string()});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("400", "--device", "--family"));
  EXPECT_LT(std::filesystem::file_size(page_), kMostBytes);
}

}  // namespace
}  // namespace hone::tuner
