#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using testing::IsEmpty;

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

}  // namespace
}  // namespace hone::cache
