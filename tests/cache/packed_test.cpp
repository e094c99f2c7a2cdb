#include "cache/packed.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <string>

#include "cache/maintenance/merge.h"
#include "cache/maintenance/summary.h"
#include "cache/maintenance/verify.h"
#include "cache/packed_trials.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;

std::vector<std::byte> repeated(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 7);
  return bytes;
}

/// As many trials as a tuning of the preset `standard` has, each with a time and a policy of its own.
std::vector<TrialRecord> many_trials() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> times(1, 100);
  std::vector<TrialRecord> trials(400, sample_publication().tuning->trials.front());
  for (TrialRecord& trial : trials) {
    trial.predicted_us = times(random);
    trial.median_us = times(random);
    trial.candidate.policy = "block_threads=" + std::to_string(random() % 32 * 32) + " vector_bytes=16 unroll=4";
  }
  return trials;
}

TEST(Packed, ComesBackAsItWas) {
  for (const std::size_t count : {0, 1, 1000, 1023, 1024, 100'000})
    for (const std::vector<std::byte>& bytes : {repeated(count), random_code(count)}) {
      const Packed packed = pack(bytes);
      EXPECT_EQ(packed.bytes, static_cast<std::int64_t>(count));
      EXPECT_LE(packed.data.size(), count);
      EXPECT_EQ(unpack(packed), bytes) << count;
    }
  EXPECT_LT(pack(repeated(100'000)).data.size(), 2'000u);
}

TEST(Packed, DamageIsNoticedOrBounded) {
  const Packed packed = pack(repeated(10'000));
  for (const std::int64_t bytes : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{9'999}, std::int64_t{10'001},
                                   std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()})
    EXPECT_FALSE(unpack({.data = packed.data, .bytes = bytes})) << bytes;
  Packed cut = packed;
  cut.data.pop_back();
  EXPECT_FALSE(unpack(cut));
}

TEST(PackedTrials, ComeBackAsTheyWere) {
  const std::vector<TrialRecord> trials = many_trials();
  EXPECT_EQ(unpack_trials(pack_trials(trials)), trials);
}

TEST(PackedTrials, WhatIsNoneIsRefused) {
  for (const std::string text : {"", "{}", "[1]", "[[]]", "[[1]]", "[[\"a\", \"b\"]]", "[[", "null"}) {
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    EXPECT_FALSE(unpack_trials({.data = {data, data + text.size()}, .bytes = 0})) << text;
  }
}

TEST_F(CacheStore, CodeAndTrialsAreSmallInTheFile) {
  sample_.binary.code = repeated(64'000);
  sample_.tuning->trials = many_trials();
  store_.publish(sample_);
  EXPECT_LT(summarize(file_).used_bytes, 130'000) << "the schema has about 90 KB, the trials alone had 80 KB";
  EXPECT_EQ(summarize(file_).trials, 400);
  EXPECT_EQ(summarize(file_).binary_bytes, 64'000);
  EXPECT_LT(summarize(file_).stored_binary_bytes, 2000);
  EXPECT_EQ(store_.find(query_)->binary, sample_.binary);
  EXPECT_EQ(store_.tuning(store_.winners().at(0).id), sample_.tuning);
  EXPECT_THAT(sql(file_, "SELECT binary_bytes FROM winners"), ElementsAre("64000"));
  EXPECT_THAT(sql(file_, "SELECT bytes, stored_bytes < 2000 FROM binaries"), ElementsAre("64000|1"));
  EXPECT_THAT(sql(file_, "SELECT count(*), count(median_us), max(rank) FROM trials"), ElementsAre("400|400|400"));
}

TEST_F(CacheStore, PackedFilesAreMerged) {
  sample_.binary.code = repeated(64'000);
  sample_.tuning->trials = many_trials();
  store_.publish(sample_);
  const std::filesystem::path other = folder_ / "other.sqlite";
  merge(other, std::vector{file_}, {});
  EXPECT_TRUE(verify(other).intact());
  EXPECT_EQ(Store(other).find(query_)->binary, sample_.binary);
  EXPECT_EQ(Store(other).tuning(1), sample_.tuning);
}

TEST_F(CacheStore, PackedCodeThatIsDamagedIsAMiss) {
  sample_.binary.code = repeated(64'000);
  store_.publish(sample_);
  for (const std::string change : {"bytes = 63999", "bytes = 0", "bytes = -5", "bytes = 9000000000000000000",
                                   "code = x'789c'"}) {
    sql(file_, "UPDATE binary SET " + change);
    EXPECT_FALSE(store_.find(query_)) << change;
    EXPECT_FALSE(verify(file_).intact()) << change;
    store_.publish(sample_);
    EXPECT_TRUE(store_.find(query_)) << "healed by the next publication";
  }
}

}  // namespace
}  // namespace hone::cache
