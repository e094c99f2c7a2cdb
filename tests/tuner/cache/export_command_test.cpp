#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using testing::CommandRun;
using test::Names;

using CacheExportCommand = CacheCommand;

std::vector<nlohmann::json> parse(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST_F(CacheExportCommand, IsHeaderBinariesBeforeTheirWinnersAndEnd) {
  fill(3);
  put(file_, cache::wider(cache::numbered(2)), kTime + 9);
  const std::vector<nlohmann::json> lines = parse(export_text());
  ASSERT_EQ(lines.size(), 1 + 3 + 4 + 1u);
  EXPECT_EQ(lines.front(), nlohmann::json::parse(R"({"hone_cache_export": 5, "binaries": true})"));
  EXPECT_EQ(lines.back(), nlohmann::json::parse(R"({"end": {"binaries": 3, "winners": 4}})"));
  std::set<std::string> binaries;
  for (const nlohmann::json& line : lines) {
    if (line.contains("binary")) binaries.insert(line["binary"]["digest"]);
    if (line.contains("winner")) {
      EXPECT_TRUE(binaries.contains(line["winner"]["binary"]));
    }
  }
}

TEST_F(CacheExportCommand, EqualCachesGiveEqualExports) {
  fill(4);
  for (const int number : {3, 1, 0, 2}) put(other_, cache::numbered(number), kTime + number);
  EXPECT_EQ(hone({"export", "--cache", other_.native()}).out, export_text());
}

TEST_F(CacheExportCommand, ChoosesTheDeviceAndWhetherCodeComesAlong) {
  fill(2);
  cache::Publication host = cache::numbered(2);
  host.key.device.kind = "host";
  host.key.device.name = "2 cores";
  put(file_, host, kTime);
  EXPECT_EQ(parse(hone({"export", "--device", "cuda"}).out).back()["end"]["winners"], 2);
  EXPECT_EQ(parse(hone({"export", "--device", "CORES"}).out).back()["end"]["winners"], 1);
  const std::vector<nlohmann::json> lines = parse(hone({"export", "--no-binaries"}).out);
  EXPECT_EQ(lines.front()["binaries"], false);
  EXPECT_EQ(lines.back()["end"]["binaries"], 0);
  EXPECT_EQ(lines.back()["end"]["winners"], 3);
}

TEST_F(CacheExportCommand, TheCacheItselfIsNotReplaced) {
  fill(2);
  const std::string all = export_text();
  expect_refusal(hone({"export", file_.native()}), 2, "another file");
  expect_refusal(hone({"export", "--text", "--device", "cuda", file_.native()}), 2, "another file");
  EXPECT_EQ(export_text(), all);
}

TEST_F(CacheExportCommand, FileIsCompleteOrNotThere) {
  fill(2);
  const fs::path target = folder_ / "winners.jsonl";
  const CommandRun run = hone({"export", target.native()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "2 winners and 2 binaries are in " + target.native() + "\n");
  expect_refusal(hone({"export", (folder_ / "no" / "x").native()}), 4, "No such file or directory");
  fs::create_directory(folder_ / "folder");
  expect_refusal(hone({"export", (folder_ / "folder").native()}), 4, "Is a directory");
  for (const fs::path& path : fs::directory_iterator(folder_.path()))
    EXPECT_EQ(path.native().find(".partial."), std::string::npos) << path;
}

TEST_F(CacheExportCommand, SaysWhatItLeavesOut) {
  fill(4);
  cache::Publication odd = cache::numbered(8);
  odd.key.problem.operation = "\xff";
  put(file_, odd, kTime);
  cache::sql(file_,
             "UPDATE winner SET registers = 1 WHERE operation = 'operation 0';"
             "DELETE FROM binary WHERE digest = (SELECT binary FROM winner WHERE operation = 'operation 2');"
             "UPDATE tuning SET measure_ms = 1 WHERE winner = (SELECT id FROM winner WHERE operation = 'operation 1')");
  const CommandRun run = hone({"export"});
  EXPECT_THAT(run.err, Names("1 winner", "left", "damaged"));
  EXPECT_THAT(run.err, Names("1 binary", "left", "damaged"));
  EXPECT_THAT(run.err, Names("1 tuning", "left"));
  EXPECT_THAT(run.err, Names("1 row", "left", "no UTF-8"));
}

TEST_F(CacheExportCommand, OfDamagedWinnersAloneIsRefusedAndLeavesTheEarlierOne) {
  fill(2);
  const std::string target = folder_ / "winners.jsonl", text = folder_ / "h100.winners";
  EXPECT_EQ(hone({"export", target}).code, 0);
  EXPECT_EQ(hone({"export", "--text", text}).code, 0);
  const auto lines = cache::read_bytes(target), rows = cache::read_bytes(text);
  cache::sql(file_, "UPDATE winner SET registers = registers + 1");
  expect_refusal(hone({"export", target}), 5, "all 2 winners are damaged");
  expect_refusal(hone({"export", "--text", text}), 5, "all 2 winners are damaged");
  EXPECT_TRUE(cache::read_bytes(target) == lines);
  EXPECT_TRUE(cache::read_bytes(text) == rows);
  const CommandRun unfinished = hone({"export"});
  EXPECT_EQ(unfinished.code, 5);
  std::istringstream in(unfinished.out);
  expect_refusal(hone({"import", "-", "--cache", other_.native()}, &in), 4, "nothing was imported");
}

TEST_F(CacheExportCommand, TextOfTheOthersSaysHowManyAreDamaged) {
  fill(3);
  cache::sql(file_, "UPDATE winner SET registers = registers + 1 WHERE operation = 'operation 0'");
  const CommandRun run = hone({"export", "--text"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("1 winner", "damaged", "left out"));
}

TEST_F(CacheExportCommand, OfAnEmptyFileIsAnEmptyExportAndOfNoFileIsRefused) {
  expect_refusal(hone({"export"}), 5, "there is no such file");
  expect_refusal(hone({"export", "--text"}), 5, "there is no such file");
  cache::write_text(file_, "");
  const CommandRun run = hone({"export"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("no winner"));
  EXPECT_EQ(parse(run.out).size(), 2u);
}

}  // namespace
}  // namespace hone::tuner
