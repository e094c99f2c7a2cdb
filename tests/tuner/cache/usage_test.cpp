#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

using test::Names;

struct Wrong {
  std::vector<std::string> words;
  std::string message;
};

using CacheUsage = CacheCommand;

TEST_F(CacheUsage, WrongArgumentsAreCode2WithAHint) {
  const std::vector<Wrong> all{
      {{}, "no command was given; commands are path, list"},
      {{"lsit"}, "unknown command 'lsit' (did you mean 'list'?)"},
      {{"list", "extra"}, "unexpected argument 'extra'"},
      {{"list", "--jsno"}, "unknown option '--jsno' (did you mean '--json'?)"},
      {{"list", "--json=3"}, "--json takes no value"},
      {{"list", "--device"}, "--device needs a value"},
      {{"path", "--dry-run"}, "unknown option '--dry-run'"},
      {{"import"}, "no file was given"},
      {{"import", "a", "b"}, "unexpected argument 'b'"},
      {{"merge"}, "no file was given"},
      {{"snapshot"}, "no file was given"},
      {{"prune"}, "nothing says what to remove"},
      {{"prune", "--older-than", "soon"}, "'soon' is not an age"},
      {{"prune", "--older-than", "-3d"}, "'-3d' is not an age"},
      {{"prune", "--older-than", "3"}, "'3' is not an age"},
      {{"prune", "--older-than", "99999999999999y"}, "is not an age"},
      {{"prune", "--max-size", "big"}, "'big' is not a number of bytes"},
      {{"prune", "--limit", "-1"}, "is not a number of bytes"},
      {{"prune", "--limit", "80Ki"},
       "--limit 80Ki: 81920 bytes have no room for winners, since an empty file takes 80 KiB; "
       "give at least 1048576 (1Mi), or 0 for no limit"},
      {{"prune", "--max-size", "0"},
       "--max-size 0: 0 bytes have no room for winners, since an empty file takes 80 KiB; "
       "give at least 1048576 (1Mi), or delete the file"},
      {{"verify", "--cache"}, "--cache needs a value"},
  };
  for (const Wrong& wrong : all) {
    const testing::CommandRun run = hone(wrong.words);
    expect_refusal(run, 2, wrong.message);
    EXPECT_THAT(run.err, Names("Try", "cache"));
  }
}

TEST_F(CacheUsage, WithTheCacheOffThereIsNothingToWorkWith) {
  const std::vector<std::vector<std::string>> all{
      {"path"},   {"list"},        {"stats"},      {"verify"},           {"repair"},
      {"export"}, {"import", "-"}, {"merge", "x"}, {"prune", "--stale"}, {"snapshot", "x"}};
  for (std::vector<std::string> words : all) {
    words.insert(words.end(), {"--cache", "off"});
    expect_refusal(hone(words), 2, "the cache is off");
  }
}

TEST_F(CacheUsage, FileThatIsOnlyReadIsNotChanged) {
  fill(1);
  Environment environment = testing::isolated_environment();
  environment.session_options = [this] {
    SessionOptions options;
    options.cache_path = file_;
    options.cache_read_only = true;
    return options;
  };
  std::istringstream nothing;
  environment.in = &nothing;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"cache", "import", "-"}, {"cache", "merge", other_.native()},
        {"cache", "prune", "--device", "cuda"}, {"cache", "repair"}}) {
    expect_refusal(testing::run_hone(words, environment), 2, "is only read; give --cache PATH");
  }
  EXPECT_EQ(testing::run_hone({"cache", "prune", "--device", "cuda", "--dry-run"}, environment).code, 0);
  EXPECT_EQ(testing::run_hone({"cache", "verify"}, environment).code, 0);
  EXPECT_EQ(testing::run_hone({"cache", "repair", "--cache", file_.native()}, environment).code, 0);
  EXPECT_EQ(found(file_, 1), 1);
}

TEST_F(CacheUsage, ModeBeforeThePathIsNoPartOfItsName) {
  fill(2);
  const std::string only_read = "ro:" + file_.native();
  EXPECT_EQ(testing::run_hone({"cache", "path", "--cache", only_read}).out, file_.native() + "\n");
  EXPECT_EQ(testing::run_hone({"cache", "verify", "--cache", only_read}).code, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"cache", "prune", "--device", "cuda"}, {"cache", "repair"}, {"tune", "reduce"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--cache", only_read});
    expect_refusal(testing::run_hone(all), 2, "is only read");
  }
  EXPECT_EQ(cache::Store(file_).winners().size(), 2u);
  EXPECT_EQ(testing::run_hone({"cache", "prune", "--device", "cuda", "--cache", "rw:" + file_.native()}).code, 0);
  EXPECT_EQ(cache::Store(file_).winners().size(), 0u);
  expect_refusal(testing::run_hone({"cache", "list", "--cache", "ro:"}), 2, "without a path");
  EXPECT_FALSE(std::filesystem::exists(only_read));
}

TEST_F(CacheUsage, EveryCommandHasHelpWithExamples) {
  EXPECT_THAT(hone({"--help"}).out, Names("Usage", "COMMAND"));
  for (const std::string command :
       {"path", "list", "stats", "verify", "repair", "export", "import", "merge", "prune", "snapshot"}) {
    const testing::CommandRun run = hone({command, "--help"});
    EXPECT_EQ(run.code, 0);
    EXPECT_THAT(run.out, Names("Usage: hone cache " + command));
    EXPECT_THAT(run.out, Names("Examples"));
    EXPECT_THAT(hone({"--help"}).out, Names("\n  " + command + " "));
  }
}

}  // namespace
}  // namespace hone::tuner
