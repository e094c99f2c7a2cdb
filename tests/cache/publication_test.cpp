#include <chrono>
#include <cmath>
#include <limits>

#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(CacheStore, FindReturnsWhatWasPublished) {
  store_.publish(sample_);
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner, sample_.winner);
  EXPECT_EQ(hit->sizes, sample_.key.problem.sizes);
  EXPECT_EQ(hit->binary, sample_.binary);
  EXPECT_FALSE(hit->stale_driver);
}

TEST_F(CacheStore, WinnersReturnEveryField) {
  const auto before = std::chrono::system_clock::now();
  store_.publish(sample_);
  const std::vector<StoredWinner> winners = store_.winners();
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].key.device, sample_.key.device);
  EXPECT_EQ(winners[0].key.toolchain, sample_.key.toolchain);
  EXPECT_EQ(winners[0].key.problem, sample_.key.problem);
  EXPECT_EQ(winners[0].winner, sample_.winner);
  EXPECT_EQ(winners[0].binary_bytes, 4);
  const std::int64_t earliest = std::chrono::duration_cast<std::chrono::seconds>(before.time_since_epoch()).count();
  EXPECT_GE(winners[0].created_at, earliest);
  EXPECT_LE(winners[0].created_at, earliest + 60);
}

TEST_F(CacheStore, TuningReturnsEveryTrialInOrder) {
  store_.publish(sample_);
  EXPECT_EQ(store_.tuning(store_.winners().at(0).id), sample_.tuning);
}

TEST_F(CacheStore, UntunedWinnerHasNoTuning) {
  store_.publish(untuned_publication());
  EXPECT_FALSE(store_.tuning(store_.winners().at(0).id));
  EXPECT_FALSE(store_.tuning(99));
}

TEST_F(CacheStore, TuningWithoutTrialsIsKept) {
  sample_.tuning->trials.clear();
  store_.publish(sample_);
  EXPECT_EQ(store_.tuning(store_.winners().at(0).id), sample_.tuning);
}

TEST_F(CacheStore, ExtremeValuesComeBack) {
  using Int = std::numeric_limits<int>;
  using Int64 = std::numeric_limits<std::int64_t>;
  sample_.winner.candidate.registers = Int::max();
  sample_.winner.candidate.local_bytes = Int::min();
  sample_.winner.bytes_moved = Int64::max();
  sample_.winner.median_us = std::numeric_limits<double>::denorm_min();
  sample_.winner.spread_us = std::numeric_limits<double>::max();
  sample_.key.problem.sizes[0] = {0, Int64::max()};
  sample_.key.device.name = "quote ' | percent % \xc3\xa9";
  sample_.winner.candidate.policy = std::string("nul \0 inside", 12);
  sample_.binary.code.assign(100'000, std::byte{0xa5});
  store_.publish(sample_);
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner, sample_.winner);
  EXPECT_EQ(hit->binary, sample_.binary);
  EXPECT_EQ(store_.winners().at(0).key.device, sample_.key.device);
}

TEST_F(CacheStore, EmptyTextsAndEmptyCodeComeBack) {
  sample_.key.problem.operation = "";
  sample_.key.toolchain.driver = std::string();
  sample_.binary.code.clear();
  store_.publish(sample_);
  const std::optional<Hit> hit = store_.find(matching_query(sample_));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->binary, sample_.binary);
}

TEST_F(CacheStore, MinusZeroComesBackAsZero) {
  sample_.winner.spread_us = -0.0;
  store_.publish(sample_);
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner.spread_us, 0.0);
}

TEST_F(CacheStore, TrialTimesThatAreNotFiniteComeBackAsNaN) {
  sample_.tuning->trials[1].predicted_us = std::numeric_limits<double>::infinity();
  sample_.tuning->trials[1].spread_us = std::nan("");
  store_.publish(sample_);
  const std::optional<TuningRecord> tuning = store_.tuning(store_.winners().at(0).id);
  ASSERT_TRUE(tuning);
  EXPECT_TRUE(std::isnan(tuning->trials[1].predicted_us));
  EXPECT_TRUE(std::isnan(tuning->trials[1].spread_us));
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM trials WHERE predicted_us IS NULL AND spread_us IS NULL"),
              ElementsAre("1"));
}

TEST_F(CacheStore, WinnerTimeThatIsNotFiniteIsRefused) {
  store_.publish(sample_);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Publication publication = sample_;
    publication.winner.median_us = bad;
    EXPECT_EQ(fault_of([&] { store_.publish(publication); }, file_, "winner.median_us"), StoreFault::failed);
  }
  EXPECT_EQ(store_.find(query_)->winner, sample_.winner);
}

TEST_F(CacheStore, RangeThatEndsBeforeItStartsIsRefused) {
  sample_.key.problem.sizes[0] = {10, 9};
  EXPECT_EQ(fault_of([&] { store_.publish(sample_); }, file_, "CHECK"), StoreFault::failed);
  EXPECT_THAT(store_.winners(), IsEmpty());
}

TEST_F(CacheStore, SeveralArePublishedTogetherOrNotAtAll) {
  const std::vector<Publication> both{sample_, wider(sample_)};
  store_.publish(both);
  EXPECT_THAT(store_.winners(), SizeIs(2));

  Store other(folder_ / "other.sqlite");
  std::vector<Publication> with_a_bad_one = both;
  with_a_bad_one.back().winner.median_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(other.publish(with_a_bad_one), StoreError);
  EXPECT_THAT(other.winners(), IsEmpty());
}

TEST_F(CacheStore, SameKeyIsReplaced) {
  store_.publish(with_threads(sample_, 32));
  const std::int64_t first_id = store_.winners().at(0).id;
  store_.publish(with_threads(sample_, 64));
  EXPECT_THAT(store_.winners(), SizeIs(1));
  EXPECT_EQ(found_threads(query_), 64);
  EXPECT_FALSE(store_.tuning(first_id)) << "ids are never used again";
}

TEST_F(CacheStore, NewDriverReplacesTheOld) {
  store_.publish(with_threads(sample_, 32));
  sample_.key.toolchain.driver = "590.2";
  store_.publish(with_threads(sample_, 64));
  EXPECT_THAT(store_.winners(), SizeIs(1));
  EXPECT_EQ(store_.winners()[0].key.toolchain.driver, "590.2");
}

TEST_F(CacheStore, UntunedNeverReplacesTuned) {
  store_.publish(sample_);
  store_.publish(untuned_publication());
  EXPECT_EQ(store_.find(query_)->winner, sample_.winner);
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM binary"), ElementsAre("1"));
}

TEST_F(CacheStore, TunedReplacesUntuned) {
  store_.publish(untuned_publication());
  store_.publish(sample_);
  EXPECT_EQ(store_.find(query_)->winner, sample_.winner);
}

TEST_F(CacheStore, UntunedReplacesUntuned) {
  store_.publish(with_threads(untuned_publication(), 32));
  store_.publish(with_threads(untuned_publication(), 64));
  EXPECT_EQ(found_threads(query_), 64);
}

TEST_F(CacheStore, ReplacedWinnerLeavesNothingBehind) {
  store_.publish(sample_);
  sample_.binary.code.push_back(std::byte{9});
  sample_.tuning->trials.pop_back();
  store_.publish(sample_);
  EXPECT_THAT(sql(file_,
                  "SELECT (SELECT count(*) FROM winner), (SELECT count(*) FROM binary),"
                  " (SELECT count(*) FROM tuning), (SELECT sum(trial_count) FROM tuning),"
                  " (SELECT count(*) FROM device), (SELECT count(*) FROM toolchain)"),
              ElementsAre("1|1|1|1|1|1"));
}

TEST_F(CacheStore, WinnersShareABinary) {
  store_.publish(sample_);
  store_.publish(wider(sample_));
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM binary"), ElementsAre("1"));
  Publication other = wider(sample_);
  other.binary.code.push_back(std::byte{9});
  store_.publish(other);
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM binary"), ElementsAre("2")) << "the other winner still needs it";
  EXPECT_EQ(store_.winners().size(), 2u);
}

TEST_F(CacheStore, SameCodeInAnotherFormatIsAnotherBinary) {
  store_.publish(sample_);
  Publication other = wider(sample_);
  other.binary.format = "elf";
  store_.publish(other);
  EXPECT_EQ(store_.find(query_)->binary->format, "elf");
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM binary"), ElementsAre("2"));
}

TEST_F(CacheStore, DeviceTakesItsNewestDescription) {
  store_.publish(sample_);
  sample_.key.problem.operation = "max";
  sample_.key.device.name = "renamed by a driver";
  store_.publish(sample_);
  ASSERT_THAT(store_.winners(), SizeIs(2));
  for (const StoredWinner& winner : store_.winners()) EXPECT_EQ(winner.key.device.name, "renamed by a driver");
}

TEST_F(CacheStore, WinnersAreOrdered) {
  const auto publish = [&](const std::string& operation, const std::string& dtype, int alignment, std::int64_t first) {
    Publication publication = sample_;
    publication.key.problem.operation = operation;
    publication.key.problem.dtype = dtype;
    publication.key.problem.alignment = alignment;
    publication.key.problem.sizes[0] = {first, 5000};
    store_.publish(publication);
  };
  publish("sum", "f32", 16, 200);
  publish("sum", "f32", 16, 3);
  publish("sum", "f32", 4, 900);
  publish("min", "i64", 16, 1);
  publish("min", "f64", 16, 1);
  std::vector<std::string> order;
  for (const StoredWinner& stored : store_.winners()) {
    const ProblemRecord& problem = stored.key.problem;
    order.push_back(problem.operation + " " + problem.dtype + " " + std::to_string(problem.alignment) + " " +
                    std::to_string(problem.sizes[0].first));
  }
  EXPECT_THAT(order, ElementsAre("min f64 16 1", "min i64 16 1", "sum f32 4 900", "sum f32 16 3", "sum f32 16 200"));
}

}  // namespace
}  // namespace hone::cache
