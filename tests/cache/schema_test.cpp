#include "cache/schema.h"

#include <gmock/gmock.h>

#include "cache/digest.h"
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
  Digest digest;
  for (const SchemaObject& object : schema_objects()) digest.add(object.name, object.sql);
  EXPECT_EQ(kSchemaVersion, 1);
  EXPECT_EQ(digest.hex(), "3922230b101e898878b3692f8d4db33a") << "raise kSchemaVersion, then put the new digest here";
}

TEST_F(CacheSchema, FileCarriesApplicationIdAndVersion) {
  EXPECT_THAT(sql(file_, "PRAGMA application_id"), ElementsAre("1215262309"));
  EXPECT_THAT(sql(file_, "PRAGMA user_version"), ElementsAre("1"));
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

TEST_F(CacheSchema, AnotherTableIsForeign) {
  sql(file_, "CREATE TABLE extra (x)");
  EXPECT_EQ(fault_of([&] { store_.find(matching_query(sample_publication())); }, file_, "another table extra"),
            StoreFault::foreign);
}

TEST_F(CacheSchema, MissingTableIsForeign) {
  sql(file_, "DROP VIEW trials; DROP TABLE trial");
  EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, "no table trial"), StoreFault::foreign);
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

TEST_F(CacheSchema, NewerVersionIsNamed) {
  sql(file_, "PRAGMA user_version = 2; CREATE TABLE of_the_future (x)");
  const std::string words = "written by a newer Hone: its schema has version 2";
  EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, words), StoreFault::newer);
  EXPECT_EQ(fault_of([&] { store_.publish(sample_publication()); }, file_, words), StoreFault::newer);
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
