#include "cache/schema.h"

#include <gmock/gmock.h>

#include "cache/digest.h"
#include "cache/properties.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CacheSchema : public testing::Test {
 protected:
  CacheSchema() { store_.publish(sample_publication()); }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  Store store_{file_};
};

TEST_F(CacheSchema, TextOnlyChangesTogetherWithTheVersion) {
  const auto digest_of = [](std::int64_t version) {
    Digest digest;
    for (const SchemaObject& object : schema_objects(version)) digest.add(object.name, object.sql);
    return digest.hex();
  };
  EXPECT_EQ(kSchemaVersion, 9);
  EXPECT_EQ(digest_of(1), "3922230b101e898878b3692f8d4db33a") << "an earlier version never changes";
  EXPECT_EQ(digest_of(2), "80f9f634334d75db66637f07e5c0cca5");
  EXPECT_EQ(digest_of(3), "ed1c5e0efcbfa14807f730a55756df49");
  EXPECT_EQ(digest_of(4), "d8bf755ee35f752fbadd2ff7a44d8582");
  EXPECT_EQ(digest_of(5), digest_of(4));
  EXPECT_EQ(digest_of(6), "7950052984d0c6ce6915c584d93fff40");
  EXPECT_EQ(digest_of(7), "30197c41a97f7e0284c2dd273f849cc3");
  EXPECT_EQ(digest_of(8), "8550c209654ef8fdceb86b69a11eeade");
  EXPECT_EQ(digest_of(9), "87ef74226d09a4be04f0908c87af4693") << "raise kSchemaVersion, then add the new digest here";
  EXPECT_THAT(schema_objects(0), IsEmpty());
  EXPECT_THAT(schema_objects(10), IsEmpty());
}

TEST_F(CacheSchema, FileCarriesApplicationIdAndVersion) {
  EXPECT_THAT(sql(file_, "PRAGMA application_id"), ElementsAre("1215262309"));
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre("9"));
}

TEST_F(CacheSchema, FileUsesARollbackJournal) { EXPECT_THAT(sql(file_, "PRAGMA journal_mode"), ElementsAre("delete")); }

TEST_F(CacheSchema, EveryTableIsStrict) {
  EXPECT_THAT(sql(file_,
                  "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict "
                  "AND name NOT LIKE 'sqlite_%'"),
              IsEmpty());
}

TEST_F(CacheSchema, ForeignKeysHold) { EXPECT_THAT(sql(file_, "PRAGMA foreign_key_check"), IsEmpty()); }

TEST_F(CacheSchema, ViewsHavePlainNames) {
  EXPECT_THAT(sql(file_,
                  "SELECT device, family, operation, dtype, first0, last0, tuned, median_us, occupancy, driver "
                  "FROM winners"),
              ElementsAre("Invented GPU|reduce|sum|f32|1|1000|1|2.625|0.75|580.1"));
  EXPECT_THAT(sql(file_, "SELECT rank, verdict, reason, samples, is_default FROM trials ORDER BY rank"),
              ElementsAre("1|ok||31|1", "2|rejected|spills 64 bytes — too many|0|0"));
}

TEST_F(CacheSchema, ViewsComputeBandwidth) {
  EXPECT_THAT(sql(file_, "SELECT CAST(gbps AS INTEGER) FROM winners"), ElementsAre("2285714"));
  EXPECT_THAT(sql(file_, "SELECT gbps IS NULL FROM trials ORDER BY rank"), ElementsAre("0", "1"));
}

TEST_F(CacheSchema, ViewHasNoFiguresOfAnotherSize) {
  Publication lent = sample_publication();
  lent.key.problem.sizes[0] = {1001, 2000};
  lent.tuning.reset();
  store_.publish(lent);
  EXPECT_THAT(sql(file_, "SELECT how, first0, bytes_moved, median_us, spread_us, gbps, extent0 FROM winners"
                         " ORDER BY first0"),
              ElementsAre("tuned|1|6000000000|2.625|0.125|2285714.28571429|512", "lent|1001|NULL|NULL|NULL|NULL|512"));
}

TEST_F(CacheSchema, ViewsShowUseStalenessAndBinaries) {
  EXPECT_THAT(sql(file_, "SELECT binary_bytes, used_at, loads, stale FROM winners"), ElementsAre("4|NULL|NULL|0"));
  EXPECT_THAT(sql(file_, "SELECT format, architecture, bytes, winners FROM binaries"), ElementsAre("cubin|sm_90|4|1"));
  const std::string key = "device, toolchain, family, operation, dtype, numerics, launch_context, alignment,"
                          " first0, last0, first1, last1, first2, last2, objective";
  sql(file_, "INSERT INTO missed SELECT " + key + ", '590.2', 'driver', 500, 1, 1, 2000, 3, 99 FROM winner;"
             "INSERT INTO claim SELECT " + key + ", 'token', 'process', 10, 20 FROM winner;"
             "INSERT INTO usage SELECT id, 77, 2 FROM winner; DELETE FROM binary");
  EXPECT_THAT(sql(file_, "SELECT binary_bytes, used_at, loads, stale FROM winners"), ElementsAre("NULL|77|2|1"));
  EXPECT_THAT(sql(file_, "SELECT device, operation, first0, last0, driver, reason, extent0, weight FROM misses"),
              ElementsAre("Invented GPU|sum|1|1000|590.2|driver|500|3"));
  EXPECT_THAT(sql(file_, "SELECT device_kind, dtype, objective, owner, expires_at_ms FROM claims"),
              ElementsAre("cuda|f32|time|token|20"));
  sql(file_, "UPDATE missed SET objective = 'energy'");
  EXPECT_THAT(sql(file_, "SELECT stale FROM winners"), ElementsAre("0")) << "a miss by energy is none by time";
}

TEST_F(CacheSchema, AnotherTableIsForeign) {
  sql(file_, "CREATE TABLE extra (x)");
  EXPECT_EQ(fault_of([&] { store_.find(matching_query(sample_publication())); }, file_, "another table extra"),
            StoreFault::foreign);
}

TEST_F(CacheSchema, MissingTableIsForeign) {
  sql(file_, "DROP VIEW trials; DROP TABLE tuning");
  EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, "no table tuning"), StoreFault::foreign);
}

TEST_F(CacheSchema, ChangedTableIsForeign) {
  sql(file_, "ALTER TABLE winner ADD COLUMN extra TEXT");
  EXPECT_EQ(fault_of([&] { store_.publish(sample_publication()); }, file_, "table winner was changed"),
            StoreFault::foreign);
}

TEST_F(CacheSchema, TriggerIsForeign) {
  sql(file_, "CREATE TRIGGER t AFTER INSERT ON winner BEGIN DELETE FROM winner; END");
  EXPECT_EQ(fault_of([&] { store_.publish(sample_publication()); }, file_, "another trigger t"), StoreFault::foreign);
}

TEST_F(CacheSchema, NewerVersionThatSaysSoIsReadButNotWritten) {
  sql(file_,
      "PRAGMA user_version = 10; CREATE TABLE of_the_future (x); DROP VIEW winners; CREATE VIEW winners AS SELECT 1");
  EXPECT_TRUE(store_.find(matching_query(sample_publication())));
  EXPECT_EQ(store_.winners().size(), 1u);
  const std::string words = "written by a newer Hone: its schema has version 10, this Hone knows 9";
  EXPECT_EQ(fault_of([&] { store_.publish(sample_publication()); }, file_, words), StoreFault::newer);
}

TEST_F(CacheSchema, NewerVersionThatCannotBeReadIsNamed) {
  const std::vector<std::string> changes{
      "DELETE FROM property",
      "UPDATE property SET value = 1 WHERE name = 'reads_from'",  // not by its digest
      "ALTER TABLE winner ADD COLUMN extra TEXT",
      "DROP VIEW misses; DROP TABLE missed",
      "CREATE TRIGGER t AFTER INSERT ON winner BEGIN DELETE FROM winner; END",
  };
  const std::vector<std::byte> whole = read_bytes(file_);
  for (const std::string& change : changes) {
    write_bytes(file_, whole);
    sql(file_, "PRAGMA user_version = 10; " + change);
    EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, "its schema has version 10"), StoreFault::newer) << change;
  }
}

TEST_F(CacheSchema, NewerVersionForNewerReadersIsNamed) {
  {
    Connection connection(file_, Access::write);
    Transaction transaction(connection, Access::write);
    write_property(connection, kReadsFromProperty, 10);
    connection.execute("PRAGMA user_version = 10");
    transaction.commit();
  }
  EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, "its schema has version 10"), StoreFault::newer);
}

/// Readers of earlier versions go by this: they would ask for columns and words that have other names now.
TEST_F(CacheSchema, FileSaysWhichReadersItIsFor) {
  EXPECT_THAT(sql(file_, "SELECT value FROM property WHERE name = 'reads_from'"), ElementsAre("8"));
}

TEST_F(CacheSchema, UnknownOldVersionIsForeign) {
  sql(file_, "PRAGMA user_version = 0");
  EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, "schema version 0"), StoreFault::foreign);
}

TEST_F(CacheSchema, VacuumedFileStillServes) {
  sql(file_, "VACUUM");
  EXPECT_TRUE(store_.find(matching_query(sample_publication())));
}

TEST_F(CacheSchema, FileInWalModeStillServes) {
  sql(file_, "PRAGMA journal_mode = WAL");
  EXPECT_TRUE(store_.find(matching_query(sample_publication())));
  store_.publish(sample_publication());
}

}  // namespace
}  // namespace hone::cache
