// hone cache path, list and stats: what is there.
#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using test::Names;

class CacheListCommand : public CacheCommand {
 protected:
  void fill_of_two_devices() {
    fill(5);
    cache::Publication host = cache::numbered(7);
    host.key.device = {"host", "2 cores", "x86_64", "cores=2;", 2, 1024, 0};
    host.key.toolchain = {"", "host-1", "fedcba"};
    put(file_, host, kTime + 99 * 86'400);
  }
};

TEST_F(CacheListCommand, PathIsAbsoluteWhetherThereIsAFileOrNot) {
  EXPECT_EQ(hone({"path"}).out, file_.native() + "\n");
  EXPECT_EQ(json({"path"})["exists"], false);
  fill(1);
  EXPECT_EQ(json({"path"})["exists"], true);
  EXPECT_EQ(hone({"path", "--cache", "relative.sqlite"}).out,
            (std::filesystem::current_path() / "relative.sqlite").native() + "\n");
  expect_refusal(hone({"path", "--cache", "off"}), 2, "the cache is off");
}

TEST_F(CacheListCommand, GroupsByDeviceToolchainAndFamily) {
  fill_of_two_devices();
  const CommandRun run = hone({"list"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, Names("Invented", "GPU"));
  EXPECT_THAT(run.out, Names("current"));
  EXPECT_THAT(run.out, Names("100 d"));
  EXPECT_THAT(run.out, Names("24 h"));
  const nlohmann::json groups = json({"list"})["groups"];
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0]["winners"], 5);
  EXPECT_EQ(groups[0]["tuned"], 2);
  EXPECT_EQ(groups[0]["binary_bytes"], 500);
  EXPECT_EQ(groups[0]["stale"], false);
  EXPECT_EQ(groups[0]["oldest"], kTime);
  EXPECT_EQ(groups[0]["newest"], kTime + 4);
  EXPECT_EQ(groups[1]["device"], "2 cores");
  EXPECT_EQ(groups[1]["stale"], nullptr) << "not in this machine";
}

TEST_F(CacheListCommand, ListAndStatsCountASharedBinaryOnce) {
  fill(2);
  cache::Publication shared = cache::numbered(1);
  shared.key.problem.operation = "another";
  put(file_, shared, kTime);
  shared.key.toolchain.driver = "590.2";  // a line of its own, with the same code
  shared.key.problem.dtype = "f64";
  put(file_, shared, kTime);
  const nlohmann::json list = json({"list"}), stats = json({"stats"});
  ASSERT_EQ(list["groups"].size(), 2u);
  EXPECT_EQ(list["groups"][0]["winners"], 3);
  EXPECT_EQ(list["groups"][0]["binaries"], 2);
  EXPECT_EQ(list["groups"][0]["binary_bytes"], 200);
  EXPECT_EQ(list["groups"][1]["binary_bytes"], 100);
  EXPECT_EQ(list["binary_bytes"], 200);
  EXPECT_EQ(list["binary_bytes"], stats["binary_bytes"]);
  EXPECT_EQ(list["binaries"], stats["binaries"]);
  EXPECT_THAT(hone({"list"}).out, Names("2 binaries", "200 B"));
  EXPECT_THAT(hone({"stats"}).out, Names("2 binaries", "200 B"));
}

TEST_F(CacheListCommand, LentWinnersAreNotCalledTuned) {
  fill(2);
  cache::Publication lent = cache::numbered(1);
  lent.key.problem.sizes[0] = {1001, 2000};
  put(file_, lent, kTime);
  const nlohmann::json group = json({"list"})["groups"][0], stats = json({"stats"});
  EXPECT_EQ(group["winners"], 3);
  EXPECT_EQ(group["tuned"], 1);
  EXPECT_EQ(group["lent"], 1);
  EXPECT_EQ(stats["lent_winners"], 1);
  EXPECT_EQ(stats["untuned_winners"], 1);
  EXPECT_THAT(hone({"stats"}).out, Names("3", "1 tuned", "1 lent", "1 untuned"));
}

TEST_F(CacheListCommand, SaysWhatIsStale) {
  fill_of_two_devices();
  driver_ = "590.2";
  EXPECT_EQ(json({"list"})["groups"][0]["stale"], true);
  EXPECT_EQ(json({"stats"})["stale_winners"], 5);
  EXPECT_EQ(json({"stats"})["winners_of_other_machines"], 1);
}

TEST_F(CacheListCommand, ChoosesTheDevice) {
  fill_of_two_devices();
  EXPECT_EQ(json({"list", "--device", "sm_90"})["groups"].size(), 1u);
  const CommandRun run = hone({"list", "--device", "sm_80"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err,
              Names("6 winners", file_.native(), "'sm_80'", "hone cache list --cache " + file_.native()));
}

TEST_F(CacheListCommand, StatsCountEverything) {
  fill_of_two_devices();
  cache::sql(file_, "UPDATE winner SET registers = 1 WHERE operation = 'operation 0'");
  const CommandRun run = hone({"stats"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out,
              Names(file_.native(), "version", "9", "keeps", "256 MiB", "6", "3 tuned", "0 lent", "3 untuned",
                    "6 binaries", "3 tunings", "2", "2 toolchains", "1 winner",
                    "hone cache verify --cache " + file_.native()));
  EXPECT_EQ(json({"stats"})["damaged_winners"], 1);
  EXPECT_EQ(json({"stats"})["trials"], 6);
}

TEST_F(CacheListCommand, NothingThereIsNoError) {
  for (const char* command : {"list", "stats", "verify"}) {
    const CommandRun run = hone({command});
    EXPECT_EQ(run.code, 0) << command;
    EXPECT_EQ(run.out, "") << command;
    EXPECT_THAT(run.err, Names("hone tune --cache " + file_.native() + "\n"));
  }
  EXPECT_TRUE(json({"list"})["groups"].empty());
  EXPECT_EQ(json({"stats"})["exists"], false);
}

TEST_F(CacheListCommand, WhatIsNoCacheIsCode5) {
  cache::write_text(file_, std::string(3000, 'x'));
  for (const char* command : {"list", "stats", "verify", "export", "repair"}) {
    const CommandRun run = hone({command});
    EXPECT_EQ(run.code, 5) << command;
    EXPECT_THAT(run.err, Names(file_.native() + " is a file of another kind")) << command;
  }
}

}  // namespace
}  // namespace hone::tuner
