#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using testing::CommandRun;
using test::HasLine;
using test::Names;
using testing::write_file;

/// Lines of an export of numbered(0) to numbered(3).
class CacheImportCommand : public CacheCommand {
 protected:
  CacheImportCommand() {
    fill(4);
    original_ = content(file_);
    std::istringstream text(export_text());
    for (std::string line; std::getline(text, line);) lines_.push_back(line);
    fs::remove(file_);
  }

  CommandRun import(const std::string& text, std::vector<std::string> options = {}) const {
    std::istringstream in(text);
    options.insert(options.begin(), {"import", "-"});
    return hone(options, &in);
  }
  static std::string join(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
  void expect_nothing_imported(const CommandRun& run, const std::string& words) const {
    expect_refusal(run, 4, words);
    EXPECT_THAT(run.err, Names("nothing", "imported"));
    EXPECT_FALSE(fs::exists(file_));
  }

  std::vector<std::string> lines_;
  std::vector<std::string> original_;
};

TEST_F(CacheImportCommand, BringsEverythingBack) {
  const CommandRun run = import(join(lines_));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names("Winners of standard input into " + file_.native()));
  EXPECT_THAT(run.out, HasLine("4", "added"));
  EXPECT_EQ(content(file_), original_);
  EXPECT_EQ(export_text(), join(lines_));
}

TEST_F(CacheImportCommand, TwiceIsAsOnce) {
  import(join(lines_));
  const std::vector<std::byte> once = cache::read_bytes(file_);
  const CommandRun run = import(join(lines_));
  EXPECT_THAT(run.out, HasLine("4", "already"));
  EXPECT_TRUE(cache::read_bytes(file_) == once);
}

TEST_F(CacheImportCommand, OrderOfTwoImportsDoesNotMatter) {
  for (int number = 2; number < 6; ++number) {
    cache::Publication other = cache::numbered(number);
    other.key.toolchain.driver = number % 3 == 0 ? "590.2" : "570.1";
    put(other_, other, kTime + 10);
  }
  const std::string other = hone({"export", "--cache", other_.native()}).out;
  import(join(lines_));
  import(other);
  const std::vector<std::string> first = content(file_);
  fs::remove(file_);
  import(other);
  import(join(lines_));
  EXPECT_EQ(content(file_), first);
  EXPECT_EQ(first.size(), 6u);
}

TEST_F(CacheImportCommand, FileThatEndsEarlierIsRefusedWhereverItEnds) {
  const std::string whole = join(lines_);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 10) {
    expect_nothing_imported(import(whole.substr(0, size)), size == 0 ? "the file is empty" : "truncated");
  }
  expect_nothing_imported(import(whole.substr(0, whole.size() - 1)), "the file ends in the middle of it");
  std::vector<std::string> endless = lines_;
  endless.pop_back();
  expect_nothing_imported(import(join(endless)), "the export has no end");
}

TEST_F(CacheImportCommand, MissingLineIsNoticedAtTheEnd) {
  for (std::size_t i = 1; i + 1 < lines_.size(); ++i) {
    std::vector<std::string> fewer = lines_;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    expect_nothing_imported(import(join(fewer)), "the export had 4 binaries and 4 winners, this file has");
  }
}

TEST_F(CacheImportCommand, DuplicateWinnerIsRefusedWithItsLine) {
  std::vector<std::string> more = lines_;
  const auto winner =
      std::find_if(more.begin(), more.end(), [](auto& line) { return line.starts_with("{\"winner\""); });
  const std::string copy = *winner;
  more.insert(winner + 1, copy);
  expect_nothing_imported(import(join(more)), "it is a second winner for reduce operation");
  EXPECT_THAT(import(join(more)).err, Names("line", "4"));
}

TEST_F(CacheImportCommand, LinesOutOfPlaceAreRefused) {
  std::vector<std::string> without_header(lines_.begin() + 1, lines_.end());
  expect_nothing_imported(import(join(without_header)), "line 1: it is no header");
  std::vector<std::string> twice = lines_;
  twice.insert(twice.begin(), lines_.front());
  expect_nothing_imported(import(join(twice)), "line 2: it is a second header");
  expect_nothing_imported(import(join(lines_) + lines_.back() + "\n"), "there is more after the end");
  expect_nothing_imported(import("\n" + join(lines_)), "line 1");
}

TEST_F(CacheImportCommand, NumbersThatAreNoneAndDamagedBytesAreRefused) {
  const auto replace = [&](const std::string& what, const std::string& by) {
    std::string text = join(lines_);
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
  };
  expect_nothing_imported(import(replace("\"median_us\":2.625", "\"median_us\":NaN")), "NaN and infinities are not");
  expect_nothing_imported(import(replace("\"median_us\":2.625", "\"median_us\":null")), "is not a number");
  expect_nothing_imported(import(replace("\"median_us\":2.625", "\"median_us\":2.626")), "digest of the winner");
  expect_nothing_imported(import(replace("\"code\":\"", "\"code\":\"AAAA")), "digest of the binary");
  expect_nothing_imported(import(replace("sm_90", "sm_80")), "digest");
}

TEST_F(CacheImportCommand, DryRunSaysWhatWouldHappen) {
  const CommandRun run = import(join(lines_), {"--dry-run"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, Names("Dry", "run"));
  EXPECT_THAT(run.out, HasLine("4", "added"));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(CacheImportCommand, WithoutBinariesTheirCodeStaysOut) {
  EXPECT_EQ(import(join(lines_), {"--no-binaries"}).code, 0);
  EXPECT_EQ(found(file_, 4), 0);
  EXPECT_EQ(found(file_, 4, cache::CodeUse::optional), 4);
}

TEST_F(CacheImportCommand, JsonCounts) {
  write_file(other_, join(lines_));
  const nlohmann::json counts = json({"import", other_.native(), "--dry-run"});
  EXPECT_EQ(counts["added"], 4);
  EXPECT_EQ(counts["dry_run"], true);
  EXPECT_EQ(counts["cache"], file_.native());
}

TEST_F(CacheImportCommand, UnreadableFilesAreNamed) {
  expect_refusal(hone({"import", (folder_ / "none").native()}), 4, "No such file");
  expect_refusal(hone({"import", folder_.path().native()}), 4, "it is a directory");
  write_file(other_, "PK\x03\x04 something else\n");
  expect_refusal(hone({"import", other_.native()}), 4, "line 1");
}

TEST_F(CacheImportCommand, UnusableCacheIsCode5) {
  write_file(file_, std::string(3000, 'x'));
  expect_refusal(import(join(lines_)), 5, "is a file of another kind");
  EXPECT_EQ(cache::read_bytes(file_).size(), 3000u);
}

}  // namespace
}  // namespace hone::tuner
