#include "cache/maintenance/snapshot.h"

#include <sys/stat.h>

#include "cache/layers.h"
#include "cache/maintenance/merge.h"
#include "cache/maintenance/prune.h"
#include "cache/maintenance/repair.h"
#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

class CacheSnapshot : public CacheMaintenance {
 protected:
  void fill(const fs::path& file, std::vector<int> numbers) {
    for (const int number : numbers) put(file, numbered(number, 5000), kTime + number);
  }
  fs::path target_ = folder_ / "shipped.sqlite";
};

TEST_F(CacheSnapshot, HoldsTheIntactWinnersAndNothingElse) {
  fill(file_, {0, 1, 2, 3});
  sql(file_,
      "UPDATE winner SET registers = 1 WHERE operation = 'operation 2';"
      "INSERT INTO usage SELECT id, 7, 7 FROM winner");
  const CopyCounts counts = snapshot(file_, target_, {});
  EXPECT_EQ(counts.added, 3);
  EXPECT_EQ(counts.binaries, 3);
  EXPECT_EQ(counts.damaged_winners, 1);
  EXPECT_EQ(found(target_, 4), 3);
  EXPECT_THAT(sql(target_,
                  "SELECT (SELECT count(*) FROM usage), (SELECT count(*) FROM claim),"
                  " (SELECT count(*) FROM missed)"),
              testing::ElementsAre("0|0|0"));
  struct ::stat facts {};
  ASSERT_EQ(::stat(target_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0444u);
}

TEST_F(CacheSnapshot, WithoutRoomItIsTheSnapshotThatHasNone) {
  fill(file_, {0, 1, 2, 3});
  const FileSizeLimit limit(64 * 1024);
  try {
    snapshot(file_, target_, {});
    FAIL() << "it has room";
  } catch (const StoreError& error) {
    EXPECT_EQ(error.fault(), StoreFault::full);
    EXPECT_EQ(error.path(), target_);
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("unfinished")));
  }
}

TEST_F(CacheSnapshot, SameWinnersGiveTheSameBytes) {
  fill(file_, {0, 1, 2, 3});
  fill(other_, {3, 2, 9, 1, 0});
  sql(other_, "DELETE FROM winner WHERE operation = 'operation 9'");
  snapshot(file_, target_, {});
  snapshot(other_, folder_ / "second.sqlite", {});
  EXPECT_TRUE(read_bytes(target_) == read_bytes(folder_ / "second.sqlite"));
}

TEST_F(CacheSnapshot, ServesFromAFolderWithoutARightToWrite) {
  fill(file_, {1});
  fs::create_directory(folder_ / "image");
  snapshot(file_, folder_ / "image" / "cache.sqlite", {});
  fs::permissions(folder_ / "image", fs::perms(0555));
  fs::permissions(folder_.path(), fs::perms(0755));
  {
    const WithoutRoot guard;
    Layers layers({{folder_ / "none.sqlite", true}, {folder_ / "image" / "cache.sqlite", false}}, {});
    EXPECT_TRUE(layers.find(matching_query(numbered(1))));
  }
  fs::permissions(folder_ / "image", fs::perms(0755));
}

// Root may write to any file: the cache itself refuses.
TEST_F(CacheSnapshot, IsNotChangedByAnyone) {
  fill(file_, {0, 1});
  fill(other_, {2});
  snapshot(file_, target_, {});
  fs::copy_file(target_, folder_ / "copy.sqlite");
  const auto before = read_bytes(target_);
  for (const fs::path& path : {target_, folder_ / "copy.sqlite"}) {
    const auto fault = [&](auto write) { return fault_of(write, path, "snapshot"); };
    EXPECT_EQ(fault([&] { fill(path, {3}); }), StoreFault::read_only);
    EXPECT_EQ(fault([&] { merge(path, std::vector{other_}, {}); }), StoreFault::read_only);
    EXPECT_EQ(fault([&] { prune(path, {.max_bytes = 0}); }), StoreFault::read_only);
    EXPECT_TRUE(read_bytes(path) == before);
    EXPECT_TRUE(repair(path).was_intact);
    fs::permissions(path, fs::perms(0644));
    sql(path, "UPDATE winner SET registers = 1");
    fs::permissions(path, fs::perms(0444));
    EXPECT_EQ(fault([&] { repair(path); }), StoreFault::read_only);
  }
}

TEST_F(CacheSnapshot, AsTheFileOfAProgramServesAndSaysThatItStoresNothing) {
  fill(file_, {0});
  snapshot(file_, target_, {});
  std::vector<LayerFailure> failures;
  const auto report = [&](const LayerFailure& failure) { failures.push_back(failure); };
  EXPECT_TRUE(Layers({{target_, true}}, report).find(matching_query(numbered(0))));
  EXPECT_TRUE(failures.empty());
  EXPECT_FALSE(Layers({{target_, true}}, report).can_write());
  Layers({{target_, true}}, report).publish(numbered(1));
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures.front().is_winner_lost);
  EXPECT_EQ(found(target_, 2), 1);
}

TEST_F(CacheSnapshot, WithoutTrialsOrCodeItIsSmaller) {
  fill(file_, {1, 3});
  snapshot(file_, target_, {});
  const auto whole = fs::file_size(target_);
  EXPECT_EQ(snapshot(file_, target_, {.binaries = false}).binaries, 0);
  EXPECT_LT(fs::file_size(target_), whole);
  EXPECT_EQ(found(target_, 4, CodeUse::optional), 2);
  snapshot(file_, target_, {.tunings = false});
  EXPECT_FALSE(Store(target_).tuning(Store(target_).winners().at(0).id));
  EXPECT_EQ(found(target_, 4), 2);
}

TEST_F(CacheSnapshot, ReplacesAnEarlierOneAndNothingElse) {
  fill(file_, {1});
  snapshot(file_, target_, {});
  snapshot(file_, target_, {});
  fs::copy_file(file_, folder_ / "cache.sqlite");
  EXPECT_EQ(fault_of([&] { snapshot(target_, folder_ / "cache.sqlite", {}); }, folder_ / "cache.sqlite", "0444"),
            StoreFault::read_only);
  write_text(other_, "a letter to somebody, which nobody wants to lose because of a name that was mistyped");
  EXPECT_EQ(fault_of([&] { snapshot(file_, other_, {}); }, other_, "another kind"), StoreFault::not_a_database);
  fs::create_symlink(file_, folder_ / "link.sqlite");
  EXPECT_EQ(fault_of([&] { snapshot(file_, folder_ / "link.sqlite", {}); }, file_, "another name"),
            StoreFault::read_only);
  EXPECT_EQ(fault_of([&] { snapshot(file_, folder_ / "no" / "x.sqlite", {}); }, folder_ / "no" / "x.sqlite",
                     "there is no folder"),
            StoreFault::unopenable);
  EXPECT_EQ(found(file_, 2), 1);
}

TEST_F(CacheSnapshot, OfNothingIsRefusedAndOfAnEmptyFileIsEmpty) {
  EXPECT_EQ(fault_of([&] { snapshot(file_, target_, {}); }, file_, "no such file"), StoreFault::unopenable);
  EXPECT_FALSE(fs::exists(target_));
  write_text(file_, "");
  EXPECT_EQ(snapshot(file_, target_, {}).added, 0);
  EXPECT_TRUE(Store(target_).winners().empty());
}

}  // namespace
}  // namespace hone::cache
