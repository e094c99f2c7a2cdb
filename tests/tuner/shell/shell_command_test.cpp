// hone shell: completions name all commands and options, and work in the shells that are installed; manual pages.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/text/help.h"
#include "tuner/shell/help_page.h"

namespace hone::tuner {
namespace {

using test::Names;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_hone;
using testing::TemporaryFolder;
using testing::write_file;

/// The output of a shell command, line by line.
std::vector<std::string> lines_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> lines;
  std::string line;
  for (int c = 0; (c = fgetc(pipe.get())) != EOF;) {
    if (c != '\n')
      line.push_back(static_cast<char>(c));
    else
      lines.push_back(std::exchange(line, {}));
  }
  return lines;
}

bool has_program(const std::string& name) { return !lines_of("command -v " + name).empty(); }

std::string script_of(const char* shell) { return run_hone({"shell", shell}).out; }

TEST(Completions, NameEveryCommandAndItsOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = script_of(shell);
    for (const char* word : {"tune", "inspect", "occupancy", "plan", "snapshot", "argmax", "bf16", "rtx5090"})
      EXPECT_THAT(script, HasSubstr(word)) << shell;
  }
  EXPECT_THAT(script_of("bash"), HasSubstr("--total-budget"));
  EXPECT_THAT(script_of("zsh"), HasSubstr("--total-budget["));
  EXPECT_THAT(script_of("fish"), HasSubstr("-l total-budget"));
}

/// The words that bash offers for the last of these.
std::vector<std::string> in_bash(const std::string& words) {
  const TemporaryFolder folder;
  write_file(folder / "hone.bash", script_of("bash"));
  return lines_of("bash -c 'source " + (folder / "hone.bash").string() + "; COMP_WORDS=(" + words +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hone; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
}

TEST(Completions, InBash) {
  if (!has_program("bash")) GTEST_SKIP() << "there is no bash";
  EXPECT_THAT(in_bash("hone ins"), Contains("inspect"));
  EXPECT_THAT(in_bash("hone cache sna"), Contains("snapshot"));
  EXPECT_THAT(in_bash("hone tune --tot"), Contains("--total-budget"));
  EXPECT_THAT(in_bash("hone tune --op sum,argm"), Contains("sum,argmax"));
  EXPECT_THAT(in_bash("hone plan --gpu h2"), Contains("h200"));
  EXPECT_THAT(in_bash("hone explain --format ke"), Contains("kernel-tuner"));
  EXPECT_THAT(in_bash("hone explain --context b"), Not(Contains("both")));
  EXPECT_THAT(in_bash("hone tune --context b"), Contains("both"));
  EXPECT_THAT(in_bash("hone tune soft"), Contains("softmax"));
  EXPECT_THAT(in_bash("hone inspect --tot"), Not(Contains("--total-budget")));
}

struct OfferedOption {
  std::string command, name;
  bool has_words = false;  ///< else nothing, or files
};

/// The options that take a value, as the script for bash has them.
std::vector<OfferedOption> offered_options() {
  std::vector<OfferedOption> options;
  std::istringstream script(script_of("bash"));
  std::string command;
  for (std::string line; std::getline(script, line);) {
    std::smatch found;
    if (std::regex_match(line, found, std::regex("    '(.*)'\\)"))) command = found[1];
    if (std::regex_match(line, found, std::regex(" *(--[a-z-]+)\\) (.*); return ;;")) && found[2] != "_hone_files")
      options.push_back({command, found[1], found[2].str().starts_with("_hone_words") ||
                                                found[2].str().starts_with("_hone_list")});
  }
  return options;
}

/// Returns the arguments that a command must have for its options to be read.
std::vector<std::string> needed_arguments(const std::string& command, const TemporaryFolder& folder) {
  if (command == "explain" || command == "emit") return {"--size", "1000"};
  if (command == "report") return {"-o", (folder / "report.html").string()};
  if (command == "reduce") return {"missing.npy"};
  if (command == "softmax" || command == "transpose" || command == "run") return {"missing.npy", "--dtype", "f32"};
  if (command == "plan") return {"--size", "1000", "--gpu", "h100"};
  return {};
}

/// Whoever refuses a word because it is none of a closed set names the set; those options offer it to shells, too.
TEST(Completions, OfferEveryClosedSet) {
  const TemporaryFolder folder;
  std::set<std::string> closed;
  for (const OfferedOption& option : offered_options()) {
    std::vector<std::string> words;
    std::istringstream path(option.command);
    for (std::string word; path >> word;) words.push_back(word);
    for (std::string& argument : needed_arguments(option.command, folder)) words.push_back(std::move(argument));
    words.insert(words.end(), {option.name, "no-such-word"});
    const testing::CommandRun run = run_hone(words, testing::isolated_environment(folder / "cache.sqlite"));
    if (run.err.find("'no-such-word'") == std::string::npos || run.err.find("known are") == std::string::npos) continue;
    closed.insert(option.name);
    EXPECT_TRUE(option.has_words) << option.command << ' ' << option.name << " takes words: " << run.err;
  }
  EXPECT_THAT(closed, ::testing::IsSupersetOf({"--op", "--dtype", "--align", "--context", "--nan", "--numerics",
                                               "--preset", "--format", "--on-miss", "--color", "--gpu", "--family"}));
}

TEST(Completions, InFish) {
  if (!has_program("fish")) GTEST_SKIP() << "there is no fish";
  const TemporaryFolder folder;
  write_file(folder / "hone.fish", script_of("fish"));
  const auto offered = [&](const std::string& line) {
    return lines_of("fish -c 'source " + (folder / "hone.fish").string() + "; complete -C \"" + line + "\"' | cut -f1");
  };
  EXPECT_THAT(offered("hone ins"), Contains("inspect"));
  EXPECT_THAT(offered("hone cache sna"), Contains("snapshot"));
  EXPECT_THAT(offered("hone tune --tot"), Contains("--total-budget"));
  EXPECT_THAT(offered("hone tune --op sum,argm"), Contains("sum,argmax"));
  EXPECT_THAT(offered("hone plan --gpu h2"), Contains("h200"));
}

TEST(Completions, ZshTakesTheScript) {
  if (!has_program("zsh")) GTEST_SKIP() << "there is no zsh";
  const TemporaryFolder folder;
  write_file(folder / "_hone", script_of("zsh"));
  EXPECT_THAT(lines_of("zsh -n " + (folder / "_hone").string() + " 2>&1; echo $?"), ::testing::ElementsAre("0"));
  EXPECT_THAT(lines_of("zsh -c 'autoload -U compinit; compinit -D; source " + (folder / "_hone").string() +
                       "; whence -w _hone _hone_cache_list' 2>&1"),
              ::testing::ElementsAre("_hone: function", "_hone_cache_list: function"));
}

TEST(ManPages, OfEveryCommandHaveNameAndSynopsis) {
  for (const SourceFile& text : embedded::help_texts()) {
    const HelpPage page = parse_help(text.text);
    EXPECT_FALSE(page.summary.empty()) << text.name;
    EXPECT_THAT(page.usage, ::testing::StartsWith("hone")) << text.name;
    const std::string roff = man_page(page, "1.0");
    EXPECT_THAT(roff, Names(".SH NAME", ".SH SYNOPSIS", page.summary)) << text.name;
    for (const HelpSection& section : page.sections)
      for (const std::string& line : section.lines) EXPECT_THAT(line, Not(::testing::StartsWith("Usage:")));
  }
  const std::string page = run_hone({"shell", "man", "cache", "list"}).out;
  EXPECT_THAT(page, Names(".TH \"HONE-CACHE-LIST\" 1", ".SH \"OPTIONS\"", "\\-\\-device", ".SH \"EXAMPLES\""));
}

TEST(ManPages, KeepTheTextLiteral) {
  const HelpPage page = parse_help("hone x: do it.\n\nUsage: hone x\n\n.hidden and \\slash\n\nOptions:\n  --a\n");
  EXPECT_THAT(man_page(page, "1"), Names("\\&.hidden and \\eslash", "  \\-\\-a"));
}

TEST(OptionSummary, IsItsFirstWords) {
  constexpr const char* kText =
      "Options:\n  -q, --quiet  print less; much less\n  --cache PATH  the cache\n                "
      "file (default: none)\n  -h, --help   print this text\n";
  EXPECT_EQ(option_summary(kText, "--quiet"), "print less");
  EXPECT_EQ(option_summary(kText, "-q"), "print less");
  EXPECT_EQ(option_summary(kText, "--cache"), "the cache file");
  EXPECT_EQ(option_summary(kText, "--cach"), "");
}

}  // namespace
}  // namespace hone::tuner
