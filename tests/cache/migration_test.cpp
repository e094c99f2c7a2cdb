#include "cache/migration.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "cache/schema.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CacheMigration : public testing::Test {
 protected:
  CacheMigration() { make_fixture(file_, 1); }

  /// The fixture's winner 5, and what publishes a further one.
  Publication fifth_ = sample_publication();
  Publication another() const {
    Publication publication = sample_publication();
    publication.key.problem.operation = "min";
    return publication;
  }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  std::filesystem::path backup_ = backup_path(file_, 1);
  Store store_{file_};
};

TEST_F(CacheMigration, OldFileIsReadAsItIs) {
  const std::vector<std::byte> before = read_bytes(file_);
  const std::optional<Hit> hit = store_.find(matching_query(fifth_));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner, fifth_.winner);
  EXPECT_EQ(hit->binary, fifth_.binary);
  EXPECT_THAT(store_.winners(), SizeIs(4));
  EXPECT_EQ(store_.tuning(5), fifth_.tuning);
  EXPECT_EQ(read_bytes(file_), before);
}

TEST_F(CacheMigration, FirstPublicationBringsEveryRowIntoOurSchema) {
  const std::vector<StoredWinner> before = store_.winners();
  store_.publish(another());
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre("3"));
  EXPECT_THAT(sql(file_, "PRAGMA integrity_check"), ElementsAre("ok"));
  EXPECT_THAT(sql(file_, "PRAGMA foreign_key_check"), IsEmpty());
  EXPECT_THAT(sql(file_, "SELECT id FROM winner ORDER BY id"), ElementsAre("2", "3", "4", "5", "8"));
  EXPECT_THAT(sql(file_, "SELECT winner, count(*) FROM trial GROUP BY winner"),
              ElementsAre("2|1", "4|2", "5|2", "8|2"));
  for (const StoredWinner& old : before) {
    SCOPED_TRACE(old.id);
    EXPECT_EQ(store_.tuning(old.id).has_value(), old.winner.tuned);
  }
  EXPECT_THAT(store_.winners(), SizeIs(5));
  EXPECT_EQ(store_.find(matching_query(fifth_))->winner, fifth_.winner);
}

TEST_F(CacheMigration, IdsOfDeletedWinnersStayUnused) {
  sql(file_, "DELETE FROM trial; DELETE FROM tuning; DELETE FROM winner");
  store_.publish(another());
  EXPECT_THAT(sql(file_, "SELECT id FROM winner"), ElementsAre("8"));
}

TEST_F(CacheMigration, FileThatNeverHadAWinnerIsMigrated) {
  sql(file_, "DELETE FROM trial; DELETE FROM tuning; DELETE FROM winner; DELETE FROM sqlite_sequence");
  store_.publish(another());
  EXPECT_THAT(sql(file_, "SELECT id FROM winner"), ElementsAre("1"));
}

TEST_F(CacheMigration, BackupIsTheOldFile) {
  const std::vector<std::byte> before = read_bytes(file_);
  write_text(backup_, "of an earlier migration");
  store_.publish(another());
  EXPECT_EQ(read_bytes(backup_), before);
  struct ::stat facts {};
  ASSERT_EQ(::stat(backup_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_THAT(Store(backup_).winners(), SizeIs(4));
  const std::filesystem::directory_iterator entries(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2) << "the cache and its backup";
}

TEST_F(CacheMigration, WithoutABackupNothingIsMigrated) {
  const std::vector<std::byte> before = read_bytes(file_);
  std::filesystem::create_directory(backup_);
  EXPECT_EQ(fault_of([&] { store_.publish(another()); }, backup_, "cannot be opened"), StoreFault::unopenable);
  EXPECT_EQ(read_bytes(file_), before);
  const std::filesystem::directory_iterator entries(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2) << "nothing half-written stays";
}

TEST_F(CacheMigration, BackupThatFindsNoSpaceIsCalledFull) {
  const std::vector<std::byte> before = read_bytes(file_);
  {
    const FileSizeLimit limit(10'000);
    EXPECT_EQ(fault_of([&] { store_.publish(another()); }, backup_, "no space left"), StoreFault::full);
  }
  EXPECT_EQ(read_bytes(file_), before);
}

TEST_F(CacheMigration, RowsThatReferToNothingAreLeftOut) {
  sql(file_,
      "DELETE FROM winner WHERE id = 2; UPDATE winner SET toolchain = 77 WHERE id = 3;"
      "DELETE FROM tuning WHERE winner = 4");
  store_.publish(another());
  EXPECT_THAT(sql(file_, "SELECT id FROM winner ORDER BY id"), ElementsAre("4", "5", "8"));
  EXPECT_THAT(sql(file_, "SELECT DISTINCT winner FROM trial ORDER BY winner"), ElementsAre("5", "8"));
  EXPECT_THAT(sql(file_, "PRAGMA foreign_key_check"), IsEmpty());
}

TEST_F(CacheMigration, ChangedOldFileIsForeign) {
  sql(file_, "CREATE TABLE extra (x)");
  EXPECT_EQ(fault_of([&] { store_.publish(another()); }, file_, "another table extra"), StoreFault::foreign);
  EXPECT_FALSE(std::filesystem::exists(backup_));
}

/// Of version 2 only the view `winners` is another.
class CacheMigrationFrom2 : public testing::Test {
 protected:
  CacheMigrationFrom2() { make_fixture(file_, 2); }

  Publication another() const {
    Publication publication = sample_publication();
    publication.key.problem.operation = "min";
    return publication;
  }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  std::filesystem::path backup_ = backup_path(file_, 2);
  Store store_{file_};
};

TEST_F(CacheMigrationFrom2, OldFileIsReadAsItIs) {
  const std::vector<std::byte> before = read_bytes(file_);
  EXPECT_TRUE(store_.find(matching_query(sample_publication())));
  EXPECT_THAT(store_.winners(), SizeIs(4));
  EXPECT_EQ(store_.tuning(2), sample_publication().tuning);
  EXPECT_EQ(read_bytes(file_), before);
}

TEST_F(CacheMigrationFrom2, EveryRowOfEveryTableIsKept) {
  std::vector<std::vector<std::string>> before;
  const std::vector<std::string> tables{"device", "toolchain", "binary", "tuning", "trial", "usage", "missed", "claim"};
  for (const std::string& table : tables) before.push_back(sql(file_, "SELECT * FROM " + table));
  const std::vector<std::string> winners = sql(file_, "SELECT * FROM winner ORDER BY id");
  Publication known = sample_publication();
  known.winner.tuned = false;  // does not replace what is there, so only the schema changes
  store_.publish(known);
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre("3"));
  EXPECT_THAT(sql(file_, "PRAGMA integrity_check"), ElementsAre("ok"));
  for (std::size_t i = 0; i < tables.size(); ++i) EXPECT_EQ(sql(file_, "SELECT * FROM " + tables[i]), before[i]);
  EXPECT_EQ(sql(file_, "SELECT * FROM winner ORDER BY id"), winners);
  EXPECT_THAT(sql(file_, "SELECT name, value FROM property ORDER BY name"),
              ElementsAre("max_bytes|1000000", "reads_from|2"));
  EXPECT_THAT(sql(backup_, "PRAGMA user_version"), ElementsAre("2"));
}

TEST_F(CacheMigrationFrom2, FiguresOfAnotherSizeLeaveTheView) {
  const std::string query = "SELECT id, bytes_moved, median_us, CAST(gbps AS INTEGER) FROM winners WHERE tuned";
  EXPECT_THAT(sql(file_, query), ElementsAre("2|6000000000|2.625|2285714", "3|9000000000|2.625|3428571"));
  store_.publish(another());
  EXPECT_THAT(sql(file_, query),
              ElementsAre("2|6000000000|2.625|2285714", "3|NULL|NULL|NULL", "7|6000000000|2.625|2285714"));
  EXPECT_THAT(sql(file_, "SELECT peak_bandwidth_gbps, registers FROM winners WHERE device_kind = 'host'"),
              ElementsAre("NULL|64"));
  EXPECT_THAT(sql(file_, "SELECT id, how, extent0 FROM winners"),
              ElementsAre("2|tuned|512", "3|lent|512", "4|nearest|4096", "5|heuristic|512", "7|tuned|512"));
}

TEST_F(CacheMigrationFrom2, ReadersOfVersion2ReadOurFiles) {
  store_.publish(another());
  for (const SchemaObject& object : schema_objects(2)) {
    if (object.type != "table") continue;
    EXPECT_THAT(sql(file_, "SELECT sql FROM sqlite_schema WHERE name = '" + std::string(object.name) + "'"),
                ElementsAre(std::string(object.sql)));
  }
  EXPECT_LE(kReadsFrom, 2);
}

}  // namespace
}  // namespace hone::cache
