#include "cache/maintenance/merge.h"

#include "cache/maintenance/snapshot.h"
#include "tests/cache/maintenance/maintenance_fixture.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

using test::Names;

namespace fs = std::filesystem;
using testing::SizeIs;

class CacheMerge : public CacheMaintenance {
 protected:
  /// Three caches that agree in some winners and contradict each other in others.
  std::vector<fs::path> contradicting_files() {
    const std::vector<fs::path> files{folder_ / "a.sqlite", folder_ / "b.sqlite", folder_ / "c.sqlite"};
    for (std::size_t file = 0; file < files.size(); ++file) {
      for (int number = 0; number < 8; ++number) {
        if ((number + file) % 4 == 0) continue;
        Publication publication = numbered(number);
        publication.key.device.name = "called " + std::to_string(file);
        publication.winner.median_us = static_cast<double>(file + 1);
        publication.binary.code.push_back(static_cast<std::byte>(file));
        if (number == 3) publication.key.toolchain.driver = "580." + std::to_string(9 + file);
        if (number == 5) publication.tuning->trials[0].samples += static_cast<int>(file);
        put(files[file], publication, kTime + number);
      }
    }
    return files;
  }
  static CopyCounts merge_into(const fs::path& destination, const std::vector<fs::path>& sources,
                               const MergeOptions& options = {}) {
    return merge(destination, sources, options);
  }
};

TEST_F(CacheMerge, OrderOfSourcesDoesNotMatterNotInOneByte) {
  const std::vector<fs::path> files = contradicting_files();
  std::vector<std::size_t> order{0, 1, 2};
  std::vector<std::byte> first;
  do {
    const fs::path merged = folder_ / "merged.sqlite";
    fs::remove(merged);
    merge_into(merged, {files[order[0]], files[order[1]], files[order[2]]});
    EXPECT_THAT(content(merged), SizeIs(8));
    if (first.empty()) first = read_bytes(merged);
    EXPECT_TRUE(read_bytes(merged) == first) << order[0] << order[1] << order[2];
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(CacheMerge, NothingMakesNoFile) {
  const std::vector<fs::path> empty{folder_ / "empty.sqlite", folder_ / "also_empty.sqlite"};
  for (const fs::path& file : empty) write_bytes(file, {});
  const fs::path merged = folder_ / "merged.sqlite";
  EXPECT_TRUE(merge_into(merged, empty).changes_nothing());
  EXPECT_FALSE(fs::exists(merged));
}

TEST_F(CacheMerge, WhoIsMergedIntoWhomDoesNotMatter) {
  const std::vector<fs::path> files = contradicting_files();
  const fs::path a = folder_ / "into_a.sqlite", b = folder_ / "into_b.sqlite";
  fs::copy_file(files[0], a);
  fs::copy_file(files[1], b);
  merge_into(a, {files[1]});
  merge_into(b, {files[0]});
  EXPECT_EQ(content(a), content(b));
  EXPECT_EQ(sql(a, "SELECT name FROM device"), sql(b, "SELECT name FROM device"));
  snapshot(a, folder_ / "1.sqlite", {});
  snapshot(b, folder_ / "2.sqlite", {});
  EXPECT_TRUE(read_bytes(folder_ / "1.sqlite") == read_bytes(folder_ / "2.sqlite"));
}

TEST_F(CacheMerge, TwiceIsAsOnceNotOneByteMore) {
  const std::vector<fs::path> files = contradicting_files();
  merge_into(file_, files);
  const std::vector<std::byte> once = read_bytes(file_);
  const CopyCounts again = merge_into(file_, files);
  EXPECT_TRUE(again.changes_nothing());
  EXPECT_EQ(again.added + again.replaced + again.binaries, 0);
  EXPECT_TRUE(read_bytes(file_) == once);
}

TEST_F(CacheMerge, CountsWhatItDid) {
  put(file_, numbered(1), kTime);
  put(file_, numbered(2), kTime);
  put(file_, numbered(3), kTime + 5);
  put(other_, numbered(1), kTime);      // the same
  put(other_, numbered(2), kTime + 9);  // younger
  put(other_, numbered(3), kTime);      // older
  put(other_, numbered(4), kTime);      // new
  const CopyCounts counts = merge_into(file_, {other_});
  EXPECT_EQ(counts.unchanged, 1);
  EXPECT_EQ(counts.replaced, 1);
  EXPECT_EQ(counts.kept, 1);
  EXPECT_EQ(counts.added, 1);
  EXPECT_EQ(counts.binaries, 1);
  EXPECT_EQ(found(file_, 5), 4);
}

TEST_F(CacheMerge, ReplacedWinnersLeaveNothingBehind) {
  put(file_, numbered(1), kTime);
  Publication better = numbered(1);
  better.key.toolchain.driver = "590.2";
  better.binary.code.push_back(std::byte{7});
  put(other_, better, kTime);
  EXPECT_EQ(merge_into(file_, {other_}).replaced, 1);
  EXPECT_THAT(sql(file_,
                  "SELECT (SELECT count(*) FROM winner), (SELECT count(*) FROM binary),"
                  " (SELECT count(*) FROM tuning), (SELECT count(*) FROM device)"),
              testing::ElementsAre("1|1|1|1"));
  EXPECT_EQ(Store(file_).winners().at(0).key.toolchain.driver, "590.2");
}

TEST_F(CacheMerge, DryRunCountsTheSameAndChangesNothing) {
  const std::vector<fs::path> files = contradicting_files();
  const CopyCounts planned = merge_into(file_, files, {.dry_run = true});
  EXPECT_FALSE(fs::exists(file_));
  fs::copy_file(files[0], file_);
  const std::vector<std::byte> before = read_bytes(file_);
  const CopyCounts planned_into = merge_into(file_, {files[1]}, {.dry_run = true});
  EXPECT_TRUE(read_bytes(file_) == before);
  EXPECT_EQ(merge_into(file_, {files[1]}).added, planned_into.added);
  fs::remove(file_);
  EXPECT_EQ(merge_into(file_, files).added, planned.added);
}

TEST_F(CacheMerge, WithoutBinariesNoCodeComesAlong) {
  put(other_, numbered(1));
  EXPECT_EQ(merge_into(file_, {other_}, {.binaries = false}).binaries, 0);
  EXPECT_EQ(found(file_, 2), 0);
  EXPECT_EQ(found(file_, 2, CodeUse::optional), 1);
  EXPECT_EQ(merge_into(file_, {other_}).binaries, 1) << "the code may come later";
  EXPECT_EQ(found(file_, 2), 1);
}

TEST_F(CacheMerge, DamagedWinnersStayBehindAndAreReplaced) {
  put(other_, numbered(1));
  put(other_, numbered(3));
  sql(other_,
      "UPDATE winner SET registers = 1 WHERE operation = 'operation 1';"
      "UPDATE tuning SET measure_ms = 1"
      " WHERE winner = (SELECT id FROM winner WHERE operation = 'operation 3')");
  const CopyCounts counts = merge_into(file_, {other_});
  EXPECT_EQ(counts.damaged_winners, 1);
  EXPECT_EQ(counts.damaged_tunings, 1);
  EXPECT_EQ(counts.added, 1);
  sql(file_, "UPDATE winner SET registers = 1; UPDATE device SET sm_count = 1");
  put(file_, numbered(3), kTime - 100);
  EXPECT_EQ(found(file_, 4), 1) << "an older one, but intact";
}

TEST_F(CacheMerge, DamagedTrialsAreReplacedByIntactOnes) {
  put(file_, numbered(1));
  sql(file_, "UPDATE tuning SET measure_ms = 1");
  put(other_, numbered(1));
  EXPECT_EQ(merge_into(file_, {other_}).replaced, 1);
  EXPECT_THAT(content(file_), testing::ElementsAre(Names("trials", "code")));
}

TEST_F(CacheMerge, EmptySourceAndEmptyFileAreNoWinners) {
  write_text(other_, "");
  EXPECT_TRUE(merge_into(file_, {other_}).changes_nothing());
  EXPECT_FALSE(fs::exists(file_) && fs::file_size(file_) > 0);
  put(other_, numbered(1));
  write_text(file_, "");
  EXPECT_EQ(merge_into(file_, {other_}).added, 1);
}

TEST_F(CacheMerge, UnusableSourcesAreNamedAndNothingHappens) {
  put(file_, numbered(1));
  const std::vector<std::byte> before = read_bytes(file_);
  put(other_, numbered(3));
  const fs::path none = folder_ / "none.sqlite", letter = folder_ / "letter.txt";
  EXPECT_EQ(fault_of([&] { merge_into(file_, {other_, none}); }, none, "no such file"), StoreFault::unopenable);
  write_text(letter, std::string(600, 'x'));
  EXPECT_EQ(fault_of([&] { merge_into(file_, {other_, letter}); }, letter, "another kind"), StoreFault::not_a_database);
  EXPECT_TRUE(read_bytes(file_) == before) << "all of it or nothing";
}

TEST_F(CacheMerge, OldSourceIsReadAsItIs) {
  make_fixture(other_, 1);
  const std::vector<std::byte> before = read_bytes(other_);
  EXPECT_EQ(merge_into(file_, {other_}).added, 4);
  EXPECT_TRUE(read_bytes(other_) == before);
}

TEST_F(CacheMerge, LockedDestinationIsBusyInTheEnd) {
  put(file_, numbered(1));
  put(other_, numbered(3));
  const Locker locker(file_);
  EXPECT_EQ(fault_of([&] { merge_into(file_, {other_}); }, file_, "locked"), StoreFault::busy);
}

}  // namespace
}  // namespace hone::cache
