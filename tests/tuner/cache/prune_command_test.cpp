#include <filesystem>

#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using test::Names;

class CachePruneCommand : public CacheCommand {
 protected:
  CachePruneCommand() {
    fill(4);
    put(file_, cache::numbered(5), kTime + 95 * 86'400);
    cache::Publication host = cache::numbered(7);
    host.key.device = {"host", "2 cores", "x86_64", "cores=2;", 2, 1024, 0};
    put(file_, host, kTime);
  }
  std::size_t left() const { return cache::Store(file_).winners().size(); }
};

TEST_F(CachePruneCommand, EverythingThatIsSaidMustBeTrue) {
  EXPECT_EQ(json({"prune", "--older-than", "30d", "--device", "cuda"})["removed_winners"], 4);
  EXPECT_EQ(left(), 2u);
  EXPECT_EQ(json({"prune", "--older-than", "200d"})["removed_winners"], 0);
  EXPECT_EQ(json({"prune", "--device", "host"})["removed_winners"], 1);
  EXPECT_EQ(left(), 1u);
}

TEST_F(CachePruneCommand, StaleOnesAreThoseOfDevicesThatAreHere) {
  EXPECT_EQ(json({"prune", "--stale"})["removed_winners"], 0);
  driver_ = "590.2";
  EXPECT_EQ(json({"prune", "--stale"})["removed_winners"], 5);
  EXPECT_EQ(left(), 1u) << "who knows what the other machine has";
}

TEST_F(CachePruneCommand, DryRunSaysWhatWouldHappen) {
  const std::vector<std::byte> before = cache::read_bytes(file_);
  const CommandRun run = hone({"prune", "--older-than", "30d", "--dry-run"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, Names("Dry run: " + file_.native(), "5", "6 winners", "removed"));
  EXPECT_TRUE(cache::read_bytes(file_) == before);
}

TEST_F(CachePruneCommand, SizeAndLimitEvict) {
  for (int number = 10; number < 12; ++number) put(file_, cache::numbered(number, 1'000'000), kTime - number);
  const CommandRun run = hone({"prune", "--max-size", "1Mi"});
  EXPECT_THAT(run.out, Names("0", "8 winners", "removed", "size", "2 binaries", "trials", "5 tunings"));
  EXPECT_EQ(left(), 8u);
  EXPECT_LE(std::filesystem::file_size(file_), std::size_t{1} << 20);
  EXPECT_THAT(hone({"prune", "--limit", "64Mi"}).out, Names("keeps", "64 MiB"));
  EXPECT_EQ(json({"stats"})["limit_bytes"], 64 << 20);
  EXPECT_THAT(hone({"prune", "--limit", "0"}).out, Names("no limit"));
  EXPECT_EQ(json({"stats"})["limit_bytes"], 256 << 20);
}

TEST_F(CachePruneCommand, NothingThereIsNoErrorAndMakesNothing) {
  std::filesystem::remove(file_);
  const CommandRun run = hone({"prune", "--stale"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("no cache"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace hone::tuner
