#include "cache/maintenance/repair.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <limits>
#include <random>

#include "cache/maintenance/prune.h"
#include "cache/maintenance/raw_file.h"
#include "cache/maintenance/verify.h"
#include "cache/schema.h"
#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPageBytes = 4096;

class CacheRepair : public CacheMaintenance {
 protected:
  CacheRepair() {
    for (int number = 0; number < kWinners; ++number) put(file_, numbered(number, 9000), kTime + number);
  }

  std::size_t root_page(const std::string& name) const {
    return std::stoul(sql(file_, "SELECT rootpage FROM sqlite_schema WHERE name = '" + name + "'").at(0));
  }
  void overwrite(std::size_t offset, std::size_t size, std::byte value) const {
    std::vector<std::byte> bytes = read_bytes(file_);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), size, value);
    write_bytes(file_, bytes);
  }
  void expect_repaired(const RepairReport& report, int winners) const {
    EXPECT_FALSE(report.was_intact);
    EXPECT_EQ(report.winners, winners);
    EXPECT_EQ(found(file_, kWinners, CodeUse::optional), winners);
    EXPECT_TRUE(verify(file_).intact());
    EXPECT_TRUE(fs::exists(report.backup));
  }

  static constexpr int kWinners = 12;
  fs::path backup_ = file_.native() + ".damaged";
};

TEST_F(CacheRepair, IntactFileIsLeftAlone) {
  const std::vector<std::byte> before = read_bytes(file_);
  const RepairReport report = repair(file_);
  EXPECT_TRUE(report.was_intact);
  EXPECT_EQ(report.backup, "");
  EXPECT_TRUE(read_bytes(file_) == before);
  EXPECT_FALSE(fs::exists(backup_));
}

TEST_F(CacheRepair, EveryRowIsSavedWhenHeaderAndSchemaAreGone) {
  const std::vector<std::string> before = content(file_);
  overwrite(0, kPageBytes, std::byte{0});
  const std::vector<std::byte> damaged = read_bytes(file_);
  const RepairReport report = repair(file_);
  expect_repaired(report, kWinners);
  EXPECT_EQ(report.binaries, kWinners);
  EXPECT_EQ(report.without_code + report.without_trials + report.damaged_winners, 0);
  EXPECT_EQ(content(file_), before);
  EXPECT_EQ(report.backup, backup_);
  EXPECT_TRUE(read_bytes(backup_) == damaged) << "what was there stays";
}

TEST_F(CacheRepair, TimesThatAreNoneAreSaved) {
  Publication publication = numbered(1);
  publication.tuning->trials[1].predicted_us = std::numeric_limits<double>::quiet_NaN();
  put(file_, publication, kTime + 99);
  const std::vector<std::string> before = content(file_);
  overwrite(0, 100, std::byte{0});
  EXPECT_EQ(repair(file_).without_trials, 0);
  EXPECT_EQ(content(file_), before);
}

TEST_F(CacheRepair, EveryRowIsSavedWhenOneTreeIsGone) {
  const std::vector<std::byte> intact = read_bytes(file_);
  for (const std::string index : {"winner_binary", "sqlite_autoindex_winner_1", "sqlite_autoindex_binary_1"}) {
    overwrite((root_page(index) - 1) * kPageBytes, kPageBytes, std::byte{0x5a});
    const RepairReport report = repair(file_);
    expect_repaired(report, kWinners);
    EXPECT_EQ(report.binaries, kWinners) << index;
    write_bytes(file_, intact);
  }
}

TEST_F(CacheRepair, RowsWhoseDigestDoesNotHoldAreLeftOut) {
  sql(file_,
      "UPDATE winner SET registers = 1 WHERE operation = 'operation 3';"
      "UPDATE binary SET code = x'00'"
      " WHERE digest = (SELECT binary FROM winner WHERE operation = 'operation 5');"
      "UPDATE tuning SET trial_bytes = 1 WHERE winner = (SELECT id FROM winner WHERE operation = 'operation 7')");
  const RepairReport report = repair(file_);
  expect_repaired(report, kWinners - 1);
  EXPECT_EQ(report.damaged_winners, 1);
  EXPECT_EQ(report.without_code, 1);
  EXPECT_EQ(report.without_trials, 1);
}

TEST_F(CacheRepair, ChangedSchemaIsPutRight) {
  sql(file_, "CREATE TABLE extra (x); INSERT INTO extra VALUES (1); CREATE INDEX more ON winner (dtype)");
  expect_repaired(repair(file_), kWinners);
}

TEST_F(CacheRepair, LimitAndModeOfTheFileStay) {
  prune(file_, {.limit_bytes = 7'000'000});
  fs::permissions(file_, fs::perms(0640));
  overwrite(0, 100, std::byte{0});
  repair(file_);
  EXPECT_THAT(sql(file_, "SELECT value FROM property WHERE name = 'max_bytes'"), testing::ElementsAre("7000000"));
  struct ::stat facts {};
  ASSERT_EQ(::stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0640u);
}

TEST_F(CacheRepair, WhatIsCutOffIsLostAndTheRestSaved) {
  fs::resize_file(file_, fs::file_size(file_) * 2 / 3 + 100);
  const RepairReport report = repair(file_);
  EXPECT_GE(report.winners, 1);
  EXPECT_EQ(report.unreadable_pages, 1);
  expect_repaired(report, static_cast<int>(report.winners));
}

TEST_F(CacheRepair, RandomDamageLosesOnlyWhatItHit) {
  const std::vector<std::byte> intact = read_bytes(file_);
  std::mt19937 random(1);
  int saved = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::byte> bytes = intact;
    for (int place = 0; place < 3; ++place) {
      const std::size_t offset = random() % (bytes.size() - 300);
      for (std::size_t i = 0; i < 300; ++i) bytes[offset + i] = static_cast<std::byte>(random());
    }
    write_bytes(file_, bytes);
    const RepairReport report = repair(file_);
    if (!report.was_intact) fs::remove(report.backup);
    EXPECT_TRUE(verify(file_).intact());
    saved += found(file_, kWinners, CodeUse::optional);
  }
  EXPECT_GT(saved, kRounds * kWinners / 2) << "three places of 300 bytes do not hit all";
}

TEST_F(CacheRepair, SecondBackupDoesNotReplaceTheFirst) {
  overwrite(0, 100, std::byte{0});
  EXPECT_EQ(repair(file_).backup, backup_);
  overwrite(0, 100, std::byte{0});
  EXPECT_EQ(repair(file_).backup, backup_.native() + ".2");
}

TEST_F(CacheRepair, JournalOfTheDamagedFileGoesWithIt) {
  overwrite(0, kPageBytes, std::byte{0});
  write_text(file_.native() + "-journal", "some bytes that are no journal");
  repair(file_);
  EXPECT_FALSE(fs::exists(file_.native() + "-journal"));
  EXPECT_EQ(found(file_, kWinners), kWinners);
}

TEST_F(CacheRepair, InterruptedWriteIsUndoneFirst) {
  const std::vector<std::string> before = content(file_);
  in_child([&] {
    sqlite3* connection = nullptr;
    sqlite3_open(file_.c_str(), &connection);
    sqlite3_exec(connection,
                 "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE winner SET digest = '';"
                 "INSERT INTO binary VALUES ('x', '', '', zeroblob(500000), '');",
                 nullptr, nullptr, nullptr);
    return 0;
  });
  ASSERT_TRUE(fs::exists(file_.native() + "-journal"));
  repair(file_);
  EXPECT_EQ(content(file_), before);
}

TEST_F(CacheRepair, WhatNeverWasACacheIsLeftAlone) {
  const std::string letter(5000, 'x');
  write_text(other_, letter);
  EXPECT_EQ(fault_of([&] { repair(other_); }, other_, "neither its header nor any row"), StoreFault::not_a_database);
  sql(folder_ / "foreign.sqlite", "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
  EXPECT_EQ(fault_of([&] { repair(folder_ / "foreign.sqlite"); }, folder_ / "foreign.sqlite", "neither its header"),
            StoreFault::not_a_database);
  EXPECT_EQ(read_bytes(other_).size(), letter.size());
  EXPECT_THAT(sql(folder_ / "foreign.sqlite", "SELECT * FROM notes"), testing::ElementsAre("mine"));
  EXPECT_EQ(fault_of([&] { repair(folder_ / "none"); }, folder_ / "none", "no such file"), StoreFault::unopenable);
  const fs::directory_iterator entries(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 3) << "nothing half-made stays";
}

TEST_F(CacheRepair, FileOfANewerHoneIsLeftAlone) {
  sql(file_, "PRAGMA user_version = 10; CREATE TABLE future (x); DROP VIEW winners; DELETE FROM property");
  const std::vector<std::byte> before = read_bytes(file_);
  EXPECT_EQ(fault_of([&] { repair(file_); }, file_, "its schema has version 10"), StoreFault::newer);
  EXPECT_TRUE(read_bytes(file_) == before);
  overwrite(kPageBytes, 100, std::byte{0});
  EXPECT_EQ(fault_of([&] { repair(file_); }, file_, "its schema has version 10"), StoreFault::newer);
}

TEST_F(CacheRepair, DamagedFileOfANewerHoneIsLeftAlone) {
  sql(file_, "PRAGMA user_version = 10");
  overwrite(100, 300, std::byte{0xff});
  EXPECT_EQ(fault_of([&] { repair(file_); }, file_, "its schema has version 10"), StoreFault::newer);
}

TEST_F(CacheRepair, VersionThatCannotBeIsDamage) {
  sql(file_, "PRAGMA user_version = 1000000");
  overwrite(100, 8, std::byte{0xff});
  overwrite(60, 4, std::byte{0x55});
  expect_repaired(repair(file_), kWinners);
}

TEST_F(CacheRepair, RawFileThatStaysLockedIsBusy) {
  RawFile file(file_);
  const Locker locker(file_);
  EXPECT_EQ(fault_of([&] { file.lock_exclusively(); }, file_, "cannot be repaired while it is in use"),
            StoreFault::busy);
}

TEST_F(CacheRepair, FileInUseIsBusyInTheEnd) {
  sql(file_, "CREATE TABLE extra (x)");
  const Locker locker(file_);
  EXPECT_EQ(fault_of([&] { repair(file_); }, file_, "locked"), StoreFault::busy);
  EXPECT_FALSE(fs::exists(backup_));
}

TEST_F(CacheRepair, OldFileIsRepairedIntoOurSchema) {
  for (std::int64_t version = 1; version < kSchemaVersion; ++version) {
    SCOPED_TRACE(version);
    const fs::path old = folder_ / fmt::format("version_{}.sqlite", version);
    make_fixture(old, static_cast<int>(version));
    sql(old, "CREATE TABLE extra (x)");
    const RepairReport report = repair(old);
    EXPECT_EQ(report.winners, 4);
    EXPECT_EQ(report.without_code + report.without_trials + report.damaged_winners, 0);
    EXPECT_THAT(sql(old, "PRAGMA user_version"), testing::ElementsAre(std::to_string(kSchemaVersion)));
    EXPECT_THAT(sql(old, "SELECT DISTINCT entries FROM binary"), testing::ElementsAre(""));
    EXPECT_THAT(sql(old, "SELECT DISTINCT numerics FROM winner"), testing::ElementsAre("fast"));
  }
}

}  // namespace
}  // namespace hone::cache
