#include "cache/maintenance/verify.h"

#include "cache/maintenance/prune.h"
#include "tests/cache/maintenance/maintenance_fixture.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using test::Names;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

auto finding(const std::string& where, const std::string& what) {
  return AllOf(Field(&Finding::where, StartsWith(where)), Field(&Finding::what, Names(what)));
}

class CacheVerify : public CacheMaintenance {
 protected:
  CacheVerify() {
    for (int number = 0; number < 4; ++number) put(file_, numbered(number), kTime + number);
    prune(file_, {.limit_bytes = 1'000'000});
  }
};

TEST_F(CacheVerify, IntactFileHasNoFindings) {
  const std::vector<std::byte> before = read_bytes(file_);
  const VerifyReport report = verify(file_);
  EXPECT_TRUE(report.intact());
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.schema_version, 9);
  EXPECT_EQ(report.devices, 1);
  EXPECT_EQ(report.winners, 4);
  EXPECT_EQ(report.binaries, 4);
  EXPECT_EQ(report.tunings, 2);
  EXPECT_EQ(report.trials, 4);
  EXPECT_TRUE(read_bytes(file_) == before);
}

TEST_F(CacheVerify, NothingAnEmptyFileAndAnOldOneAreIntact) {
  EXPECT_TRUE(verify(other_).intact());
  write_text(other_, "");
  EXPECT_TRUE(verify(other_).intact());
  std::filesystem::remove(other_);
  make_fixture(other_, 1);
  const VerifyReport report = verify(other_);
  EXPECT_TRUE(report.intact());
  EXPECT_EQ(report.winners, 4);
}

TEST_F(CacheVerify, EvictedCodeIsNoDamage) {
  sql(file_, "DELETE FROM binary WHERE digest = (SELECT binary FROM winner WHERE id = 1)");
  const VerifyReport report = verify(file_);
  EXPECT_TRUE(report.intact());
  EXPECT_EQ(report.without_code, 1);
}

TEST_F(CacheVerify, EveryKindOfRowIsChecked) {
  const std::vector<std::byte> intact = read_bytes(file_);
  const std::string kWrong = "digest does not hold";
  const std::vector<std::pair<std::string, std::string>> damages{
      {"UPDATE winner SET registers = 1 WHERE id = 2", "winner 2"},
      {"UPDATE binary SET code = x'00' WHERE digest = (SELECT binary FROM winner WHERE id = 1)", "binary "},
      {"UPDATE tuning SET compile_ms = 1 WHERE winner = 2", "trials of winner 2"},
      {sql_to_change_trials("winner = 2"), "trials of winner 2"},
      {"UPDATE property SET value = 3 WHERE name = 'max_bytes'", "property max_bytes"},
  };
  for (const auto& [change, where] : damages) {
    sql(file_, change);
    const VerifyReport report = verify(file_);
    EXPECT_FALSE(report.intact()) << change;
    EXPECT_THAT(report.findings, ElementsAre(finding(where, kWrong))) << change;
    write_bytes(file_, intact);
  }
  sql(file_, "UPDATE device SET sm_count = 1");
  EXPECT_THAT(verify(file_).findings, testing::Contains(finding("device 1", kWrong)));
}

TEST_F(CacheVerify, BrokenReferencesAreNamed) {
  sql(file_, "DELETE FROM winner WHERE id = 2");  // SQLite's own default: no foreign keys, so its tuning stays
  sql(file_, "UPDATE winner SET toolchain = 77 WHERE id = 3");
  const VerifyReport report = verify(file_);
  EXPECT_THAT(report.findings, testing::Contains(finding("tuning 2", "refers to a winner that is not there")));
  EXPECT_THAT(report.findings, testing::Contains(finding("winner 3", "refers to a toolchain that is not there")));
}

TEST_F(CacheVerify, DamagedTreesAreNamedAndTheRestIsStillChecked) {
  std::vector<std::byte> bytes = read_bytes(file_);
  const auto page = std::stoul(sql(file_, "SELECT rootpage FROM sqlite_schema WHERE name = 'tuning'").at(0));
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>((page - 1) * 4096), 4096, std::byte{0x55});
  write_bytes(file_, bytes);
  const VerifyReport report = verify(file_);
  EXPECT_THAT(report.findings, testing::Contains(finding("table tuning", "cannot read it to its end")));
  EXPECT_EQ(report.winners, 4);
}

TEST_F(CacheVerify, ListsAHundredFindingsAndCountsAll) {
  sql(file_,
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)"
      " INSERT INTO binary SELECT 'digest ' || i, 'cubin', 'sm_90', x'00', '', 0 FROM n");
  const VerifyReport report = verify(file_);
  EXPECT_THAT(report.findings, SizeIs(100));
  EXPECT_EQ(report.damaged, 150);
}

TEST_F(CacheVerify, WhatIsNoCacheIsAnError) {
  write_text(other_, std::string(2000, 'x'));
  EXPECT_EQ(fault_of([&] { verify(other_); }, other_, "another kind"), StoreFault::not_a_database);
  sql(file_, "CREATE TABLE extra (x)");
  EXPECT_EQ(fault_of([&] { verify(file_); }, file_, "another table extra"), StoreFault::foreign);
}

}  // namespace
}  // namespace hone::cache
