#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CommandRun;
using test::HasLine;
using test::Names;

class CacheMergeCommand : public CacheCommand {
 protected:
  CacheMergeCommand() {
    fill(3);
    for (int number = 2; number < 5; ++number) put(other_, cache::numbered(number), kTime + 10);
  }
};

TEST_F(CacheMergeCommand, CountsWhatItDid) {
  const CommandRun run = hone({"merge", other_.native()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(Names("Winners of 1 file into " + file_.native()),
                             HasLine("2", "added"),
                             HasLine("1", "replaced", "better"),
                             HasLine("2", "binaries", "copied")));
  EXPECT_EQ(found(file_, 5), 5);
  EXPECT_THAT(hone({"merge", other_.native()}).out, HasLine("3", "already"));
}

TEST_F(CacheMergeCommand, OfAnEmptyFileSaysThatThereWasNothing) {
  cache::write_text(other_, "");
  const CommandRun run = hone({"merge", other_.native()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasLine("nothing", "to add"));
}

TEST_F(CacheMergeCommand, DryRunChangesNothing) {
  const std::vector<std::byte> before = cache::read_bytes(file_);
  EXPECT_THAT(hone({"merge", other_.native(), "--dry-run"}).out,
              AllOf(Names("Dry", "run"), HasLine("2", "added")));
  EXPECT_TRUE(cache::read_bytes(file_) == before);
  EXPECT_EQ(json({"merge", other_.native(), "--dry-run"})["added"], 2);
}

TEST_F(CacheMergeCommand, SaysWhatStayedBehind) {
  cache::sql(other_, "UPDATE winner SET registers = 1 WHERE operation = 'operation 3'; DELETE FROM binary");
  const CommandRun run = hone({"merge", other_.native()});
  EXPECT_THAT(run.err, Names("1 winner", "left", "without code"));
}

TEST_F(CacheMergeCommand, AFileOfDamagedWinnersAloneIsRefused) {
  const std::vector<std::byte> before = cache::read_bytes(file_);
  cache::sql(other_, "UPDATE winner SET registers = 1");
  expect_refusal(hone({"merge", other_.native()}), 5, other_.native());
  EXPECT_TRUE(cache::read_bytes(file_) == before);
  expect_refusal(hone({"merge", file_.native(), other_.native(), "--cache", folder_ / "new.sqlite"}), 5,
                 "all 3 winners are damaged");
  EXPECT_EQ(cache::Store(folder_ / "new.sqlite").winners().size(), 0u);
}

TEST_F(CacheMergeCommand, WrongFilesAreNamed) {
  expect_refusal(hone({"merge", file_.native()}), 2, "cannot be merged into itself");
  fs::create_symlink(file_, folder_ / "link");
  expect_refusal(hone({"merge", (folder_ / "link").native()}), 2, "cannot be merged into itself");
  expect_refusal(hone({"merge", (folder_ / "none").native()}), 5, "there is no such file");
  expect_refusal(hone({"merge", other_.native(), (folder_ / "none").native()}), 5, "shard");
  expect_refusal(hone({"merge", folder_.path().native()}), 5, "it is a directory");
}

}  // namespace
}  // namespace hone::tuner
