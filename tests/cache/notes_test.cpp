#include "cache/notes.h"

#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CacheNotes : public CacheStore {
 protected:
  MissRecord miss(const std::string& reason, const std::string& driver) const {
    MissRecord miss{.key = sample_.key, .reason = reason, .extents = {500, 1, 3}, .bytes_moved = 2000};
    miss.key.toolchain.driver = driver;
    return miss;
  }
  void note(const Notes& notes) const { store_.note(notes, std::chrono::seconds(20)); }
};

TEST_F(CacheNotes, MissesOfOneClassAddUp) {
  note({.misses = {miss(kUntuned, "580.1"), miss(kUntuned, "580.1")}, .loads = {}});
  MissRecord last = miss(kUntuned, "580.1");
  last.extents = {7, 1, 1};
  note({.misses = {last}, .loads = {}});
  EXPECT_THAT(sql(file_, "SELECT operation, first0, last0, driver, reason, extent0, extent1, extent2, bytes_moved,"
                         " weight, missed_at > 1700000000 FROM misses"),
              ElementsAre("sum|1|1000|580.1|untuned|7|1|1|2000|3|1"));
}

TEST_F(CacheNotes, MissesAreReadTheHeaviestFirst) {
  EXPECT_THAT(store_.misses(), IsEmpty());
  MissRecord large = miss(kUntuned, "580.1");
  large.key.problem.operation = "max";
  large.bytes_moved = 9000;
  MissRecord often = miss(kOtherDriver, "590.2");
  often.key.problem.operation = "min";
  note({.misses = {miss(kUntuned, "580.1"), large, often, often}, .loads = {}});
  const std::vector<StoredMiss> misses = store_.misses();
  ASSERT_EQ(misses.size(), 3u);
  EXPECT_EQ(misses[0].miss.key.problem.operation, "min");
  EXPECT_EQ(misses[0].weight, 2);
  EXPECT_EQ(misses[0].miss.reason, kOtherDriver);
  EXPECT_EQ(misses[0].miss.key.toolchain.driver, "590.2");
  EXPECT_EQ(misses[1].miss.key.problem.operation, "max");
  EXPECT_EQ(misses[2].miss.key.problem, sample_.key.problem);
  EXPECT_EQ(misses[2].miss.key.device, sample_.key.device);
  EXPECT_EQ(misses[2].miss.extents, (std::array<std::int64_t, 3>{500, 1, 3}));
  EXPECT_EQ(misses[2].miss.bytes_moved, 2000);
  EXPECT_GT(misses[2].missed_at, 1'700'000'000);
}

TEST_F(CacheNotes, TunedPublicationEndsTheMissesThatItCovers) {
  note({.misses = {miss(kUntuned, "580.1")}, .loads = {}});
  store_.publish(untuned_publication());
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM missed"), ElementsAre("1"));
  store_.publish(wider(sample_));
  EXPECT_THAT(sql(file_, "SELECT * FROM missed"), IsEmpty());
}

TEST_F(CacheNotes, WinnerOfAnotherDriverIsStaleUntilItIsTunedAgain) {
  store_.publish(sample_);
  note({.misses = {miss(kOtherDriver, "590.2")}, .loads = {}});
  EXPECT_THAT(sql(file_, "SELECT driver, stale FROM winners"), ElementsAre("580.1|1"));
  store_.publish(sample_);
  EXPECT_THAT(sql(file_, "SELECT stale FROM winners"), ElementsAre("1")) << "still not under the new driver";
  sample_.key.toolchain.driver = "590.2";
  store_.publish(sample_);
  EXPECT_THAT(sql(file_, "SELECT driver, stale FROM winners"), ElementsAre("590.2|0"));
  EXPECT_THAT(sql(file_, "SELECT * FROM missed"), IsEmpty());
}

TEST_F(CacheNotes, LoadsAreCountedPerWinner) {
  store_.publish(sample_);
  const std::int64_t id = store_.winners().at(0).id;
  EXPECT_EQ(store_.find(query_)->used_at, 0);
  EXPECT_EQ(store_.find(query_)->winner_id, id);
  note({.misses = {}, .loads = {{id, 2}, {99, 1}}});
  note({.misses = {}, .loads = {{id, 1}}});
  EXPECT_THAT(sql(file_, "SELECT winner, loads FROM usage"), ElementsAre(std::to_string(id) + "|3"));
  EXPECT_GT(store_.find(query_)->used_at, 1'700'000'000);
  store_.publish(sample_);
  EXPECT_THAT(sql(file_, "SELECT * FROM usage"), IsEmpty()) << "a replaced winner was never used";
}

}  // namespace
}  // namespace hone::cache
