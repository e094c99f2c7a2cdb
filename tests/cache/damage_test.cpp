#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "cache/store.h"
#include "tests/cache/support.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

using test::Names;

class CacheDamage : public testing::Test {
 protected:
  CacheDamage() { store_.publish(sample_); }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  Store store_{file_};
  Publication sample_ = sample_publication();
  Query query_ = matching_query(sample_);
};

/// Returns true if a lookup with `query` may return `hit` after `published` was stored.
bool is_right(const std::optional<Hit>& hit, const Publication& published) {
  return !hit || (hit->winner == published.winner && hit->sizes == published.key.problem.sizes &&
                  hit->binary == published.binary && !hit->stale_driver);
}

TEST_F(CacheDamage, EveryWinnerColumnIsCovered) {
  const std::vector<std::byte> intact = read_bytes(file_);
  for (const std::string& column : sql(file_, "SELECT name FROM pragma_table_info('winner')")) {
    if (column == "id") continue;
    const std::string change = "PRAGMA ignore_check_constraints = ON; UPDATE winner SET " + column + " = CASE typeof(" +
                               column + ") WHEN 'text' THEN " + column + " || 'x' ELSE " + column + " - 1 END";
    sql(file_, change);
    EXPECT_FALSE(store_.find(query_)) << column;
    EXPECT_THAT(store_.winners(), testing::IsEmpty()) << column;
    write_bytes(file_, intact);
  }
  EXPECT_TRUE(store_.find(query_));
}

TEST_F(CacheDamage, EveryColumnOfDeviceAndToolchainIsCovered) {
  const std::vector<std::byte> intact = read_bytes(file_);
  for (const std::string table : {"device", "toolchain"}) {
    for (const std::string& column : sql(file_, "SELECT name FROM pragma_table_info('" + table + "') WHERE NOT pk")) {
      sql(file_, "UPDATE " + table + " SET " + column + " = CASE typeof(" + column + ") WHEN 'text' THEN " + column +
                     " || 'x' ELSE " + column + " + 1 END");
      EXPECT_FALSE(store_.find(query_)) << table << '.' << column;
      EXPECT_THAT(store_.winners(), testing::IsEmpty()) << table << '.' << column;
      write_bytes(file_, intact);
    }
  }
}

TEST_F(CacheDamage, NumberThatDoesNotFitIsNotTruncated) {
  sql(file_, "UPDATE winner SET block_threads = block_threads + 4294967296");
  EXPECT_FALSE(store_.find(query_));
}

TEST_F(CacheDamage, ChangedBinaryIsAMiss) {
  for (const std::string change : {"code = x'7f00ff46'", "code = x'7f00ff'", "code = x''", "format = 'elf'",
                                   "architecture = 'sm_80'", "digest = 'x'"}) {
    sql(file_, "UPDATE binary SET " + change);
    EXPECT_FALSE(store_.find(query_)) << change;
    store_.publish(sample_);
    EXPECT_TRUE(store_.find(query_)) << change;
  }
}

TEST_F(CacheDamage, MissingBinaryIsAMiss) {
  sql(file_, "DELETE FROM binary");
  EXPECT_FALSE(store_.find(query_));
}

TEST_F(CacheDamage, BinaryOfAnotherWinnerIsAMiss) {
  Publication other = sample_;
  other.key.problem.operation = "max";
  other.binary.code.push_back(std::byte{1});
  store_.publish(other);
  sql(file_, "UPDATE winner SET binary = (SELECT binary FROM winner WHERE operation = 'max')");
  EXPECT_FALSE(store_.find(query_));
  EXPECT_TRUE(store_.find(matching_query(other)));
}

TEST_F(CacheDamage, NextBestIntactWinnerServes) {
  Publication wider = sample_;
  wider.key.problem.sizes[0].last = 2000;
  wider.winner.candidate.block_threads = 64;
  store_.publish(wider);
  ASSERT_EQ(store_.find(query_)->winner, wider.winner);
  sql(file_, "UPDATE winner SET registers = 1 WHERE last0 = 2000");
  ASSERT_TRUE(store_.find(query_));
  EXPECT_EQ(store_.find(query_)->winner, sample_.winner);
}

TEST_F(CacheDamage, DamagedTunedWinnerIsReplacedByAnUntunedOne) {
  const Publication untuned = untuned_publication();
  sql(file_, "UPDATE winner SET registers = registers + 1");
  store_.publish(untuned);
  ASSERT_TRUE(store_.find(query_));
  EXPECT_EQ(store_.find(query_)->winner, untuned.winner);
}

TEST_F(CacheDamage, TunedWinnerWithADamagedBinaryIsReplacedByAnUntunedOne) {
  const Publication untuned = untuned_publication();
  sql(file_, "UPDATE binary SET code = x'00'");
  store_.publish(untuned);
  ASSERT_TRUE(store_.find(query_));
  EXPECT_EQ(store_.find(query_)->winner, untuned.winner);
}

TEST_F(CacheDamage, SharedDamagedBinaryIsHealedByTheNextPublication) {
  Publication other = sample_;
  other.key.problem.operation = "max";
  sql(file_, "UPDATE binary SET code = x'00'");
  store_.publish(other);
  EXPECT_TRUE(store_.find(query_));
}

TEST_F(CacheDamage, ChangedTrialsAreNamed) {
  const std::int64_t id = store_.winners().at(0).id;
  const std::vector<std::byte> intact = read_bytes(file_);
  for (const std::string& change : {sql_to_change_trials(), std::string("UPDATE tuning SET trials = x''"),
                                   std::string("UPDATE tuning SET measure_ms = 1"),
                                   std::string("UPDATE tuning SET trial_bytes = 100000"),
                                   std::string("UPDATE tuning SET trials = CAST('[[1]]' AS BLOB)")}) {
    sql(file_, change);
    EXPECT_EQ(fault_of([&] { store_.tuning(id); }, file_, "trials"), StoreFault::corrupt) << change;
    EXPECT_TRUE(store_.find(query_)) << "trials are no part of a lookup";
    write_bytes(file_, intact);
  }
}

TEST_F(CacheDamage, DamagedTrialsKeepNoOthersFromBeingRead) {
  Publication other = sample_, untuned = untuned_publication();
  other.key.problem.operation = "max";
  untuned.key.problem.operation = "min";
  store_.publish(std::vector{other, untuned});
  const std::vector<StoredWinner> winners = store_.winners();
  std::vector<std::int64_t> ids;
  for (const StoredWinner& winner : winners) ids.push_back(winner.id);
  sql(file_, sql_to_change_trials("winner = " + std::to_string(ids.at(0))));
  ids.push_back(99);
  const std::vector<FoundTuning> found = store_.tunings(ids);
  ASSERT_EQ(found.size(), ids.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].is_damaged, i == 0) << i;
    EXPECT_EQ(found[i].tuning.has_value(), i != 0 && i < winners.size() && winners[i].winner.tuned) << i;
  }
  EXPECT_FALSE(Store(file_.string() + ".missing").tunings(ids).at(0).tuning);
}

TEST_F(CacheDamage, FlippedBytesAreNeverServed) {
  sample_.binary.code.resize(20'000);
  std::mt19937 random(1);
  for (std::byte& byte : sample_.binary.code) byte = static_cast<std::byte>(random());
  store_.publish(sample_);
  const std::vector<std::byte> intact = read_bytes(file_);
  int hits = 0, misses = 0, errors = 0;
  constexpr int kFlips = 2000;
  for (int flip = 0; flip < kFlips; ++flip) {
    std::vector<std::byte> damaged = intact;
    const std::size_t offset = random() % damaged.size();
    damaged[offset] ^= static_cast<std::byte>(1 + random() % 255);
    write_bytes(file_, damaged);
    try {
      const std::optional<Hit> hit = store_.find(query_);
      EXPECT_TRUE(is_right(hit, sample_)) << "offset " << offset;
      ++(hit ? hits : misses);
    } catch (const StoreError&) {
      ++errors;
    }
  }
  std::cout << kFlips << " flipped bytes: " << hits << " right, " << misses << " misses, " << errors << " errors\n";
  EXPECT_GT(misses, 0);
}

TEST_F(CacheDamage, TruncatedFileIsNeverServed) {
  sample_.binary.code.resize(20'000);
  store_.publish(sample_);
  const std::vector<std::byte> intact = read_bytes(file_);
  for (std::size_t size = 0; size < intact.size(); size += 997) {
    write_bytes(file_, {intact.begin(), intact.begin() + static_cast<std::ptrdiff_t>(size)});
    try {
      EXPECT_TRUE(is_right(store_.find(query_), sample_)) << size;
    } catch (const StoreError& error) {
      EXPECT_THAT(error.what(), Names(file_.native()));
    }
  }
}

TEST_F(CacheDamage, CorruptPagesAreNamed) {
  std::vector<std::byte> bytes = read_bytes(file_);
  std::fill(bytes.begin() + 4096, bytes.end(), std::byte{0xee});
  write_bytes(file_, bytes);
  EXPECT_EQ(fault_of([&] { store_.find(query_); }, file_, "is damaged"), StoreFault::corrupt);
  EXPECT_EQ(fault_of([&] { store_.publish(sample_); }, file_, "is damaged"), StoreFault::corrupt);
  EXPECT_EQ(fault_of([&] { store_.find(query_); }, file_, "hone cache repair --cache " + file_.native()),
            StoreFault::corrupt);
}

}  // namespace
}  // namespace hone::cache
