#include "cache/maintenance/open_file.h"
#include "cache/maintenance/prune.h"

#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class CachePrune : public CacheMaintenance {
 protected:
  void fill() {
    for (int number = 0; number < 6; ++number) put(file_, numbered(number, 20'000), kTime + number);
  }
  static bool is_early(const StoredWinner& winner) { return winner.created_at < kTime + 2; }
};

TEST_F(CachePrune, RemovesWhatTheRuleSaysWithAllThatBelongsToIt) {
  fill();
  const PruneCounts counts = prune(file_, {.removes = is_early});
  EXPECT_EQ(counts.winners_before, 6);
  EXPECT_EQ(counts.winners, 2);
  EXPECT_LT(counts.bytes_after, counts.bytes_before);
  EXPECT_EQ(static_cast<std::uintmax_t>(counts.bytes_after), fs::file_size(file_));
  EXPECT_THAT(sql(file_,
                  "SELECT (SELECT count(*) FROM winner), (SELECT count(*) FROM binary),"
                  " (SELECT count(*) FROM tuning), (SELECT sum(trial_count) FROM tuning),"
                  " (SELECT freelist_count FROM pragma_freelist_count)"),
              ElementsAre("4|4|2|4|0"));
  EXPECT_EQ(found(file_, 6), 4);
}

TEST_F(CachePrune, AnEmptyFileStaysEmpty) {
  write_text(file_, "");
  const PruneCounts counts = prune(file_, {.removes = is_early, .max_bytes = 1 << 20});
  EXPECT_EQ(counts.winners_before, 0);
  EXPECT_EQ(fs::file_size(file_), 0u);
}

TEST_F(CachePrune, WhatWasRemovedIsGoneThoughOthersKeepTheFileFromShrinking) {
  fill();
  WritingFile file(file_);
  file.connection().execute("DELETE FROM winner WHERE id > 1");
  file.commit();
  {
    const Locker locker(file_);
    EXPECT_NO_THROW(file.give_back_free_pages());
  }
  EXPECT_EQ(Store(file_).winners().size(), 1u);
  const std::uintmax_t before = fs::file_size(file_);
  file.give_back_free_pages();
  EXPECT_LE(fs::file_size(file_), before);
}

TEST_F(CachePrune, ClaimsAndMissesOfADeviceWithoutWinnersStay) {
  const Publication publication = sample_publication();
  const Store store(file_);
  ASSERT_EQ(store.claim(publication.key, nullptr, "a", std::chrono::minutes(1), std::chrono::seconds(5)),
            ClaimState::taken);
  store.note({.misses = {{.key = publication.key, .reason = kUntuned}}, .loads = {}}, std::chrono::seconds(5));
  prune(file_, {});
  EXPECT_TRUE(store.is_claimed(publication.key));
  EXPECT_EQ(store.misses().size(), 1u);
}

TEST_F(CachePrune, CodeThatAnotherWinnerNeedsStays) {
  put(file_, numbered(1), kTime);
  put(file_, wider(numbered(1)), kTime + 9);
  EXPECT_EQ(prune(file_, {.removes = is_early}).winners, 1);
  EXPECT_EQ(found(file_, 2), 1);
}

TEST_F(CachePrune, DryRunCountsTheSameAndChangesNothing) {
  fill();
  const std::vector<std::byte> before = read_bytes(file_);
  const PruneCounts planned = prune(file_, {.removes = is_early, .max_bytes = 150'000, .dry_run = true});
  EXPECT_TRUE(read_bytes(file_) == before);
  const PruneCounts done = prune(file_, {.removes = is_early, .max_bytes = 150'000});
  EXPECT_EQ(done.winners, planned.winners);
  EXPECT_EQ(done.evicted.binaries, planned.evicted.binaries);
  EXPECT_EQ(done.bytes_after, planned.bytes_after);
}

TEST_F(CachePrune, MaxBytesEvicts) {
  fill();
  const PruneCounts counts = prune(file_, {.max_bytes = 150'000});
  EXPECT_GT(counts.evicted.binaries, 0);
  EXPECT_EQ(counts.evicted.winners, 0);
  EXPECT_LE(counts.bytes_after, 150'000);
  EXPECT_EQ(found(file_, 6, CodeUse::optional), 6);
  EXPECT_EQ(prune(file_, {.max_bytes = 0}).evicted.winners, 6);
}

TEST_F(CachePrune, LimitStaysWithTheFile) {
  fill();
  prune(file_, {.limit_bytes = 150'000});
  EXPECT_THAT(sql(file_, "SELECT value FROM property WHERE name = 'max_bytes'"), ElementsAre("150000"));
  EXPECT_EQ(found(file_, 6), 6) << "it is kept to with the next publication";
  Store(file_).publish(numbered(7, 20'000));
  EXPECT_LT(found(file_, 6), 6);
}

TEST_F(CachePrune, DamagedWinnersAreRepairsToDecide) {
  fill();
  sql(file_, "UPDATE winner SET registers = 1 WHERE operation = 'operation 0'");
  EXPECT_EQ(prune(file_, {.removes = [](const StoredWinner&) { return true; }}).winners, 5);
  EXPECT_THAT(sql(file_, "SELECT operation FROM winner"), ElementsAre("operation 0"));
}

TEST_F(CachePrune, FileThatDoesNotExistIsNotMade) {
  EXPECT_EQ(prune(file_, {.max_bytes = 0, .limit_bytes = 5}).winners_before, 0);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(CachePrune, LinkLeadsToTheFile) {
  fill();
  fs::create_symlink(file_, other_);
  EXPECT_EQ(prune(other_, {.removes = is_early}).winners, 2);
  EXPECT_TRUE(fs::is_symlink(other_));
  EXPECT_EQ(found(file_, 6), 4);
}

TEST_F(CachePrune, ReadOnlyFileIsRefused) {
  fill();
  WithoutRoot::give(file_);
  fs::permissions(file_, fs::perms(0444));
  fs::permissions(folder_.path(), fs::perms(0555));
  const WithoutRoot guard;
  EXPECT_EQ(fault_of([&] { prune(file_, {.removes = is_early}); }, file_, "cannot be written to"),
            StoreFault::read_only);
}

TEST_F(CachePrune, WithoutATemporaryFolderADryRunSaysSo) {
  fill();
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  for (const fs::path& place : {folder_ / "none", folder_ / "winners.sqlite"}) {
    ::setenv("TMPDIR", place.c_str(), 1);
    EXPECT_EQ(fault_of([&] { prune(file_, {.dry_run = true}); }, file_, "set TMPDIR"), StoreFault::unopenable);
  }
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace hone::cache
