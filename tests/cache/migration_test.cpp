#include "cache/migration.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <regex>

#include "cache/maintenance/merge.h"
#include "cache/maintenance/verify.h"
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
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre("9"));
  EXPECT_THAT(sql(file_, "PRAGMA integrity_check"), ElementsAre("ok"));
  EXPECT_THAT(sql(file_, "PRAGMA foreign_key_check"), IsEmpty());
  EXPECT_THAT(sql(file_, "SELECT id FROM winner ORDER BY id"), ElementsAre("2", "3", "4", "5", "8"));
  EXPECT_THAT(sql(file_, "SELECT winner, trial_count FROM tuning"),
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
  EXPECT_THAT(sql(file_, "SELECT winner FROM tuning WHERE trial_count > 0 ORDER BY winner"), ElementsAre("5", "8"));
  EXPECT_THAT(sql(file_, "PRAGMA foreign_key_check"), IsEmpty());
}

TEST_F(CacheMigration, ChangedOldFileIsForeign) {
  sql(file_, "CREATE TABLE extra (x)");
  EXPECT_EQ(fault_of([&] { store_.publish(another()); }, file_, "another table extra"), StoreFault::foreign);
  EXPECT_FALSE(std::filesystem::exists(backup_));
}

/// The columns that later versions added to the rows of a query, as sql() prints them.
std::string added_since(int version, std::string_view query) {
  const auto asks = [&](std::string_view table) { return query.ends_with(table); };
  if (asks("winner")) return version < 6 ? "|time|" : version < 7 ? "|" : "";
  return "";
}

/// Versions 2 to 8, by their number. They have the tables of ours, but for columns, their names, and words.
class CacheMigrationFrom : public testing::TestWithParam<int> {
 protected:
  CacheMigrationFrom() { make_fixture(file_, GetParam()); }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  std::filesystem::path backup_ = backup_path(file_, GetParam());
  Store store_{file_};
};

TEST_P(CacheMigrationFrom, OldFileIsReadAsItIs) {
  const std::vector<std::byte> before = read_bytes(file_);
  const std::optional<Hit> hit = store_.find(matching_query(sample_publication()));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner, sample_publication().winner);
  EXPECT_EQ(hit->binary, sample_publication().binary);
  EXPECT_THAT(store_.winners(), SizeIs(4));
  EXPECT_THAT(store_.find_near(matching_query(sample_publication()), {{{1, 1000}, {1, 1}, {1, 7}}}), SizeIs(2));
  EXPECT_EQ(store_.tuning(2), sample_publication().tuning);
  const VerifyReport report = verify(file_);
  EXPECT_TRUE(report.intact());
  EXPECT_EQ(report.winners, 4);
  EXPECT_EQ(read_bytes(file_), before);
}

TEST_P(CacheMigrationFrom, EveryRowOfEveryTableIsKept) {
  // The view has one order of columns in every version.
  const std::string kTrials =
      "SELECT winner_id, rank, verdict, reason, is_default, max_blocks, block_threads, registers, static_smem_bytes,"
      " local_bytes, resident_blocks, bytes_in_flight_per_sm, predicted_us, median_us, spread_us, samples FROM trials";
  const std::vector<std::string> queries{"SELECT * FROM device",
                                         "SELECT * FROM toolchain",
                                         "SELECT digest, format, architecture, hex(code) FROM binary",
                                         "SELECT * FROM winner",
                                         "SELECT winner, started_at, compile_ms, measure_ms, digest FROM tuning",
                                         kTrials,
                                         "SELECT * FROM usage",
                                         "SELECT driver, reason, extent0, extent1, weight, missed_at FROM missed",
                                         "SELECT owner, process, taken_at_ms, expires_at_ms FROM claim",
                                         "SELECT * FROM sqlite_sequence"};
  std::vector<std::vector<std::string>> before;
  for (const std::string& query : queries) {
    before.push_back(sql(file_, query));
    for (std::string& row : before.back())
      row = std::regex_replace(row, std::regex("\\|reproducible\\|"), "|fast|") + added_since(GetParam(), query);
  }
  Publication known = sample_publication();
  known.winner.tuned = false;  // does not replace what is there, so only the schema changes
  store_.publish(known);
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre("9"));
  EXPECT_THAT(sql(file_, "PRAGMA integrity_check"), ElementsAre("ok"));
  for (std::size_t i = 0; i < queries.size(); ++i) EXPECT_EQ(sql(file_, queries[i]), before[i]) << queries[i];
  EXPECT_THAT(sql(file_, "SELECT name, value FROM property ORDER BY name"),
              ElementsAre("max_bytes|1000000", "reads_from|8"));
  EXPECT_THAT(sql(file_, "SELECT DISTINCT entries FROM binary"), ElementsAre(""));
  EXPECT_THAT(sql(file_, "SELECT objective FROM missed UNION ALL SELECT objective FROM claim"),
              ElementsAre("time", "time", "time"));
  EXPECT_THAT(sql(file_, "SELECT policy FROM winners WHERE id = 2"), ElementsAre("block_threads=256 vector_bytes=16"));
  EXPECT_THAT(sql(file_, "SELECT count(policy) FROM trials"), ElementsAre("2"));
  EXPECT_THAT(sql(backup_, "PRAGMA user_version"), ElementsAre(std::to_string(GetParam())));
  EXPECT_TRUE(verify(file_).intact()) << "digests hold";
  EXPECT_EQ(store_.find(matching_query(known))->binary, known.binary);
  EXPECT_EQ(store_.tuning(2), sample_publication().tuning);
}

/// The word that was the only one. What is asked for in the mode that has it now is not there.
TEST_P(CacheMigrationFrom, ReproducibleIsFastNow) {
  Query query = matching_query(sample_publication());
  query.numerics = "reproducible";
  EXPECT_FALSE(store_.find(query));
  EXPECT_THAT(store_.find_near(query, {{{1, 1000}, {1, 1}, {1, 7}}}), IsEmpty());
  for (const StoredWinner& stored : store_.winners()) EXPECT_EQ(stored.key.problem.numerics, "fast");
  for (const StoredMiss& stored : store_.misses()) EXPECT_EQ(stored.miss.key.problem.numerics, "fast");
  EXPECT_THAT(store_.misses(), SizeIs(2));

  Publication exact = sample_publication();
  exact.key.problem.numerics = "reproducible";
  store_.publish(exact);
  for (const char* table : {"winner", "missed", "claim"})
    EXPECT_THAT(sql(file_, std::string("SELECT count(*) FROM ") + table + " WHERE numerics <> 'fast'"),
                ElementsAre(table == std::string("winner") ? "1" : "0"));
  EXPECT_EQ(store_.find(query)->winner, exact.winner);
  EXPECT_THAT(store_.winners(), SizeIs(5));
  EXPECT_TRUE(verify(file_).intact());
}

/// A claim of a process of the version before holds off others until the file is migrated, and afterwards.
TEST_P(CacheMigrationFrom, ClaimIsFound) {
  sql(file_,
      "UPDATE claim SET process = '', taken_at_ms = unixepoch() * 1000, expires_at_ms = (unixepoch() + 60) * 1000");
  KeyRecord key = sample_publication().key;
  key.problem.operation = "product";
  EXPECT_TRUE(store_.is_claimed(key));
  EXPECT_EQ(store_.claim(key, nullptr, "another", std::chrono::seconds(1), std::chrono::seconds(20)), ClaimState::held);
  key.problem.numerics = "reproducible";
  EXPECT_FALSE(store_.is_claimed(key));
}

/// Winners of a GPU serve whatever its marketing name, and whatever NVRTC is there, before the file is migrated and
/// afterwards.
TEST_P(CacheMigrationFrom, WinnersServeUnderAnotherNameAndCompiler) {
  Publication here = sample_publication();
  here.key.device.identity.insert(0, "name=Invented GPU 80GB HBM3;");
  here.key.toolchain.compiler = "nvrtc 14.0";
  EXPECT_EQ(store_.find(matching_query(here))->binary, sample_publication().binary);
  here.key.problem.operation = "min";
  store_.publish(here);
  here.key.problem.operation = "sum";
  EXPECT_EQ(store_.find(matching_query(here))->binary, sample_publication().binary);
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM device WHERE identity LIKE 'name=%'"), ElementsAre("0"));
}

/// Merging reads the old file without changing it.
TEST_P(CacheMigrationFrom, OldFileIsMerged) {
  const std::filesystem::path other = folder_ / "other.sqlite";
  const CopyCounts counts = merge(other, std::vector{file_}, {});
  EXPECT_EQ(counts.added, 4);
  EXPECT_EQ(counts.without_code + counts.damaged_winners + counts.damaged_tunings, 0);
  EXPECT_TRUE(verify(other).intact());
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre(std::to_string(GetParam())));
}

/// A file of a version before 6 knows winners by time alone, before and after it is migrated.
TEST_P(CacheMigrationFrom, WinnersWereChosenByTime) {
  Publication by_energy = sample_publication();
  by_energy.key.problem.objective = "energy";
  by_energy.tuning->power_limit_w = 700;
  by_energy.tuning->trials[0].energy_uj = 1250.5;
  by_energy.tuning->trials[0].energy_spread_uj = 12.5;
  by_energy.tuning->trials[0].sequence = 3;
  Query query = matching_query(by_energy);
  query.objective = "energy";
  EXPECT_FALSE(store_.find(query));
  store_.publish(by_energy);
  EXPECT_EQ(store_.find(query)->winner, by_energy.winner);
  EXPECT_EQ(store_.tuning(store_.find(query)->winner_id), by_energy.tuning);
  EXPECT_EQ(store_.find(matching_query(sample_publication()))->winner_id, 2);
  EXPECT_THAT(store_.misses(), SizeIs(2)) << "what programs miss by time is still missed";
  EXPECT_TRUE(verify(file_).intact());
  const auto replace = [&](const std::string& text, const std::string& by) {
    sql(file_, "UPDATE tuning SET trials = CAST(replace(CAST(trials AS TEXT), '" + text + "', '" + by + "') AS BLOB)");
  };
  replace("1250.5", "1.5");
  EXPECT_FALSE(verify(file_).intact()) << "digests cover what was added";
  replace("1.5,12.5", "1250.5,12.5");
  EXPECT_TRUE(verify(file_).intact());
  replace(",3]", ",0]");
  EXPECT_FALSE(verify(file_).intact());
}

INSTANTIATE_TEST_SUITE_P(Version, CacheMigrationFrom, testing::Values(2, 3, 4, 5, 6, 7, 8));

TEST(CacheMigrationFrom2, FiguresOfAnotherSizeLeaveTheView) {
  const TempFolder folder;
  const std::filesystem::path file = folder / "winners.sqlite";
  make_fixture(file, 2);
  Publication another = sample_publication();
  another.key.problem.operation = "min";
  const std::string query = "SELECT id, bytes_moved, median_us, CAST(gbps AS INTEGER) FROM winners WHERE tuned";
  EXPECT_THAT(sql(file, query), ElementsAre("2|6000000000|2.625|2285714", "3|9000000000|2.625|3428571"));
  Store(file).publish(another);
  EXPECT_THAT(sql(file, query),
              ElementsAre("2|6000000000|2.625|2285714", "3|NULL|NULL|NULL", "7|6000000000|2.625|2285714"));
  EXPECT_THAT(sql(file, "SELECT peak_bandwidth_gbps, registers FROM winners WHERE device_kind = 'host'"),
              ElementsAre("NULL|64"));
  EXPECT_THAT(sql(file, "SELECT id, how, extent0 FROM winners"),
              ElementsAre("2|tuned|512", "3|lent|512", "4|nearest|4096", "5|heuristic|512", "7|tuned|512"));
}

}  // namespace
}  // namespace hone::cache
