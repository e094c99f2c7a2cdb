#include "cache/store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "tests/cache/support.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CacheStore : public testing::Test {
 protected:
  /// Which of several winners answers: every publication here gets a block_threads of its own.
  int found_threads(const Query& query) const {
    const std::optional<Hit> hit = store_.find(query);
    return hit ? hit->winner.candidate.block_threads : 0;
  }
  Publication with_threads(Publication publication, int block_threads) const {
    publication.winner.candidate.block_threads = block_threads;
    return publication;
  }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  Store store_{file_};
  Publication sample_ = sample_publication();
  Query query_ = matching_query(sample_);
};

// --- nothing there ---

TEST_F(CacheStore, MissingFileIsAMiss) {
  EXPECT_FALSE(store_.find(query_));
  EXPECT_THAT(store_.winners(), IsEmpty());
  EXPECT_FALSE(store_.tuning(1));
}

TEST_F(CacheStore, ReadingCreatesNothing) {
  const Store store(folder_ / "no" / "such" / "folder" / "winners.sqlite");
  EXPECT_FALSE(store.find(query_));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "no"));
}

TEST_F(CacheStore, EmptyFileIsAnEmptyCache) {
  write_text(file_, "");
  EXPECT_FALSE(store_.find(query_));
  EXPECT_THAT(store_.winners(), IsEmpty());
  EXPECT_EQ(std::filesystem::file_size(file_), 0u);
  store_.publish(sample_);
  EXPECT_TRUE(store_.find(query_));
}

// --- round trips ---

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
  sample_.winner.candidate.variant = std::string("nul \0 inside", 12);
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
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM trial WHERE predicted_us IS NULL AND spread_us IS NULL"),
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

// --- the key ---

TEST_F(CacheStore, EveryKeyColumnCounts) {
  store_.publish(sample_);
  const std::vector<std::pair<std::string, std::function<void(Query&)>>> changes{
      {"kind", [](Query& query) { query.device.kind = "host"; }},
      {"architecture", [](Query& query) { query.device.architecture = "sm_80"; }},
      {"identity", [](Query& query) { query.device.identity += "x"; }},
      {"compiler", [](Query& query) { query.toolchain.compiler = "nvrtc 12.8"; }},
      {"family_digest", [](Query& query) { query.toolchain.family_digest = "f"; }},
      {"family", [](Query& query) { query.family = "softmax"; }},
      {"operation", [](Query& query) { query.operation = "SUM"; }},
      {"dtype", [](Query& query) { query.dtype = "f64"; }},
      {"numerics", [](Query& query) { query.numerics = "fast"; }},
      {"launch_context", [](Query& query) { query.launch_context = "graph"; }},
      {"alignment", [](Query& query) { query.alignment = 8; }},
  };
  for (const auto& [name, change] : changes) {
    Query query = query_;
    change(query);
    EXPECT_FALSE(store_.find(query)) << name;
  }
}

TEST_F(CacheStore, DescriptionOfADeviceIsNoKey) {
  store_.publish(sample_);
  query_.device.name = "renamed by a driver";
  query_.device.sm_count = 0;
  EXPECT_TRUE(store_.find(query_));
}

TEST_F(CacheStore, EmptyCompilerMatchesAny) {
  store_.publish(with_threads(sample_, 32));
  query_.toolchain.compiler = "";
  EXPECT_EQ(found_threads(query_), 32);
  sample_.key.toolchain.compiler = "nvrtc 13.1";
  store_.publish(with_threads(sample_, 64));
  EXPECT_EQ(found_threads(query_), 64) << "the newest of all compilers";
}

TEST_F(CacheStore, StoredEmptyCompilerMatchesNoOther) {
  sample_.key.toolchain.compiler = "";
  store_.publish(sample_);
  EXPECT_FALSE(store_.find(query_));
}

TEST_F(CacheStore, AnotherDriverIsAStaleHit) {
  store_.publish(sample_);
  query_.toolchain.driver = "590.2";
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_TRUE(hit->stale_driver);
}

TEST_F(CacheStore, BothEndsOfARangeAreServed) {
  store_.publish(sample_);
  const std::vector<std::pair<std::array<std::int64_t, 3>, bool>> cases{
      {{1, 1, 1}, true},  {{1000, 1, 7}, true}, {{0, 1, 1}, false}, {{1001, 1, 1}, false},
      {{1, 0, 1}, false}, {{1, 2, 1}, false},   {{1, 1, 0}, false}, {{1, 1, 8}, false},
  };
  for (const auto& [extents, is_hit] : cases) {
    query_.extents = extents;
    EXPECT_EQ(store_.find(query_).has_value(), is_hit) << extents[0] << ' ' << extents[1] << ' ' << extents[2];
  }
}

// --- which of several ---

/// The same class with a wider range: another key that serves the same queries.
Publication wider(Publication publication) {
  publication.key.problem.sizes[0].last = 2000;
  return publication;
}

TEST_F(CacheStore, TunedComesBeforeUntuned) {
  store_.publish(with_threads(sample_, 32));
  store_.publish(with_threads(wider(untuned_publication()), 64));
  EXPECT_EQ(found_threads(query_), 32);
}

TEST_F(CacheStore, TunedUnderAnotherDriverComesBeforeUntuned) {
  store_.publish(with_threads(sample_, 32));
  query_.toolchain.driver = "590.2";
  Publication untuned = with_threads(wider(untuned_publication()), 64);
  untuned.key.toolchain.driver = "590.2";
  store_.publish(untuned);
  EXPECT_EQ(found_threads(query_), 32);
}

TEST_F(CacheStore, SameDriverComesBeforeAnother) {
  store_.publish(with_threads(sample_, 32));
  Publication other = with_threads(wider(sample_), 64);
  other.key.toolchain.driver = "590.2";
  store_.publish(other);
  EXPECT_EQ(found_threads(query_), 32);
  query_.toolchain.driver = "590.2";
  EXPECT_EQ(found_threads(query_), 64);
}

TEST_F(CacheStore, NewestComesFirst) {
  store_.publish(with_threads(wider(sample_), 32));
  store_.publish(with_threads(sample_, 64));
  EXPECT_EQ(found_threads(query_), 64);
  store_.publish(with_threads(wider(sample_), 96));
  EXPECT_EQ(found_threads(query_), 96) << "a replacement is new";
}

// --- replacing ---

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
                  " (SELECT count(*) FROM tuning), (SELECT count(*) FROM trial),"
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

// --- the place ---

::mode_t mode_of(const std::filesystem::path& path) {
  struct ::stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0);
  return facts.st_mode & 07777;
}

TEST_F(CacheStore, MadeFilesAndFoldersArePrivate) {
  const ::mode_t old_mask = ::umask(0);
  const Store store(folder_ / "a" / "b" / "winners.sqlite");
  store.publish(sample_);
  ::umask(old_mask);
  EXPECT_EQ(mode_of(store.path()), 0600u);
  EXPECT_EQ(mode_of(folder_ / "a"), 0700u);
  EXPECT_EQ(mode_of(folder_ / "a" / "b"), 0700u);
}

TEST_F(CacheStore, ModeOfAnExistingFileIsKept) {
  write_text(file_, "");
  std::filesystem::permissions(file_, std::filesystem::perms(0640));
  store_.publish(sample_);
  EXPECT_EQ(mode_of(file_), 0640u);
}

TEST_F(CacheStore, PublishLeavesOneFile) {
  store_.publish(sample_);
  const std::filesystem::directory_iterator entries(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(CacheStore, SymbolicLinkIsFollowed) {
  std::filesystem::create_symlink(folder_ / "target.sqlite", file_);
  EXPECT_FALSE(store_.find(query_));
  store_.publish(sample_);
  EXPECT_TRUE(Store(folder_ / "target.sqlite").find(query_));
}

TEST_F(CacheStore, RelativePathIsAnOrdinaryFile) {
  const std::filesystem::path old_folder = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  Store(":memory:").publish(sample_);
  std::filesystem::current_path(old_folder);
  EXPECT_TRUE(Store(folder_ / ":memory:").find(query_));
}

TEST_F(CacheStore, NamesWithOddCharactersWork) {
  const Store store(folder_ / "file: ?mode=ro&#'\"%20 \xc3\xa9.sqlite");
  store.publish(sample_);
  EXPECT_TRUE(store.find(query_));
}

// --- size ---

TEST_F(CacheStore, TwoThousandWinnersAreQuick) {
  store_.publish(sample_);
  sql(file_,
      "CREATE TEMP TABLE n AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1999)"
      " SELECT i FROM c;"
      "INSERT INTO winner SELECT 10 + i, device, toolchain, family, operation, dtype, numerics, launch_context,"
      " alignment, 1000 * i + 1, 1000 * i + 1000, first1, last1, first2, last2, driver, binary, variant,"
      " max_blocks, block_threads, registers, static_smem_bytes, local_bytes, max_threads_per_block,"
      " resident_blocks, tuned, extent0, extent1, extent2, bytes_moved, median_us, spread_us, created_at, digest"
      " FROM winner, n WHERE id = 1");
  EXPECT_THAT(sql(file_, "SELECT count(*) FROM winner"), ElementsAre("2000"));
  constexpr int kCalls = 100;
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < kCalls; ++call) EXPECT_TRUE(store_.find(query_));
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  std::cout << "open + find among 2000 winners: " << spent.count() / kCalls << " us\n";
}

}  // namespace
}  // namespace hone::cache
