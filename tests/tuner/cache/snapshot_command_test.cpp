#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using testing::CommandRun;
using test::Names;
using ::testing::StartsWith;

class CacheSnapshotCommand : public CacheCommand {
 protected:
  CacheSnapshotCommand() { fill(4); }

  fs::path target_ = folder_ / "shipped.sqlite";
};

TEST_F(CacheSnapshotCommand, WritesAFileToShip) {
  const CommandRun run = hone({"snapshot", target_.native()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("4 winners with 4 binaries are in " + target_.native() + ", "));
  EXPECT_EQ(found(target_, 4), 4);
  const nlohmann::json counts = json({"snapshot", target_.native(), "--no-binaries", "--no-trials"});
  EXPECT_EQ(counts["winners"], 4);
  EXPECT_EQ(counts["binaries"], 0);
  EXPECT_EQ(counts["bytes"], fs::file_size(target_));
}

TEST_F(CacheSnapshotCommand, SaysWhatItLeavesOut) {
  cache::sql(file_,
             "UPDATE winner SET registers = 1 WHERE operation = 'operation 0'; UPDATE tuning SET trial_bytes = 1");
  const CommandRun run = hone({"snapshot", target_.native()});
  EXPECT_THAT(run.err, Names("1 winner", "left"));
  EXPECT_THAT(run.err, Names("2 winners", "without trials"));
}

TEST_F(CacheSnapshotCommand, OfDamagedWinnersAloneIsRefusedAndLeavesTheEarlierOne) {
  hone({"snapshot", target_.native()});
  const auto before = cache::read_bytes(target_);
  cache::sql(file_, "UPDATE winner SET registers = registers + 1");
  expect_refusal(hone({"snapshot", target_.native()}), 5, "all 4 winners are damaged");
  EXPECT_TRUE(cache::read_bytes(target_) == before);
}

TEST_F(CacheSnapshotCommand, NoCommandWritesToASnapshot) {
  const std::string text = export_text();
  hone({"snapshot", target_.native()});
  const auto before = cache::read_bytes(target_);
  const std::string cache = "--cache=" + target_.native();
  std::istringstream in(text);
  expect_refusal(hone({"merge", file_.native(), cache}), 5, "as that of a snapshot");
  expect_refusal(hone({"import", "-", cache}, &in), 5, "as that of a snapshot");
  expect_refusal(hone({"prune", "--max-size", "1Mi", cache}), 5, "as that of a snapshot");
  expect_refusal(testing::run_hone({"tune", "--device", "host", cache}), 5, "as that of a snapshot");
  EXPECT_TRUE(cache::read_bytes(target_) == before);
}

TEST_F(CacheSnapshotCommand, WrongTargetsAreRefused) {
  expect_refusal(hone({"snapshot", file_.native()}), 2, "is the cache itself");
  expect_refusal(hone({"snapshot", (folder_ / "no" / "x").native()}), 5, "there is no folder");
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    const fs::path companion = fs::path(file_) += suffix;
    expect_refusal(hone({"snapshot", companion.native()}), 2, "belongs to the database '" + file_.native() + "'");
    EXPECT_FALSE(fs::exists(companion));
    fs::create_symlink(companion, target_);
    expect_refusal(hone({"snapshot", target_.native()}), 2, "belongs to the database");
    fs::remove(target_);
  }
  cache::write_text(other_, std::string(3000, 'x'));
  expect_refusal(hone({"snapshot", other_.native()}), 5, "another kind");
  fs::copy_file(file_, target_);
  const CommandRun writable = hone({"snapshot", target_.native()});
  expect_refusal(writable, 5, "remove this one first");
  EXPECT_THAT(writable.err, ::testing::Not(::testing::HasSubstr("make it")));
  fs::remove(target_);
  fs::remove(file_);
  expect_refusal(hone({"snapshot", target_.native()}), 5, "there is no such file");
}

}  // namespace
}  // namespace hone::tuner
