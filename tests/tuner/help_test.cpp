#include "tuner/text/help.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;
using test::Names;
using testing::run_hone;

const std::vector<std::string> kAllCommands{"devices", "tune",      "inspect", "explain", "report", "occupancy",
                                            "plan", "transfer", "reduce",    "softmax", "transpose", "run",  "check",
                                            "emit",    "cache",     "stats",   "shell"};

TEST(Help, EveryCommandTeachesWithExamples) {
  for (const std::string& command : kAllCommands) {
    const auto run = run_hone({command, "--help"});
    EXPECT_EQ(run.code, 0);
    EXPECT_EQ(run.err, "");
    EXPECT_THAT(run.out, Names("Usage: hone " + command));
    EXPECT_THAT(run.out, Names("Examples:\n  hone " + command));
    EXPECT_EQ(run_hone({"help", command}).out, run.out);
    EXPECT_EQ(run_hone({command, "-h"}).out, run.out);
  }
}

TEST(Help, ListsCommandsAndExitCodes) {
  const auto run = run_hone({"--help"});
  EXPECT_EQ(run.code, 0);
  for (const std::string& command : kAllCommands) EXPECT_THAT(run.out, Names("\n  " + command));
  for (const char* code : {"\n  0 ", "\n  1 ", "\n  2 ", "\n  3 ", "\n  4 ", "\n  5 ", "\n  6 ", "\n  130 "}) {
    EXPECT_THAT(run.out, Names(code));
  }
  EXPECT_EQ(run_hone({"help"}).out, run.out);
}

TEST(Help, FitsATerminalOf80Columns) {
  for (const SourceFile& text : embedded::help_texts()) {
    std::istringstream lines(text.text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << text.name << ": " << line;
  }
}

TEST(Help, NamesNoOptionThatDoesNotExist) {
  for (const SourceFile& text : embedded::help_texts()) {
    // cache_list.txt is the help of "hone cache list".
    const std::string command = text.name.substr(0, text.name.find('.'));
    if (command == "hone") continue;
    const std::size_t gap = command.find('_');
    std::vector<std::string> words{command.substr(0, gap)};
    if (gap != std::string::npos) words.push_back(command.substr(gap + 1));
    std::istringstream lines(text.text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  -")) continue;
      const std::size_t begin = line.find("--");
      const std::string option = line.substr(begin, line.find(' ', begin) - begin);
      std::vector<std::string> args = words;
      args.insert(args.end(), {option, "no value of its own", "--no-such-option"});
      EXPECT_THAT(run_hone(args).err,
                  ::testing::Not(HasSubstr("unknown option '" + option)))
          << command;
    }
  }
}

TEST(Help, IsWhatTheDocumentationShows) {
  std::ifstream in(HONE_DOCS_FOLDER "/cli.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const SourceFile& text : embedded::help_texts()) {
    EXPECT_THAT(page, Names("```text\n" + text.text + "```\n")) << text.name;
  }
}

TEST(Version, IsOneLine) {
  const auto run = run_hone({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, ::testing::MatchesRegex("hone [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace hone::tuner
