#include "cache/identity.h"
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
      {"compiler's options", [](Query& query) { query.toolchain.compiler += ":1+address"; }},
      {"family_digest", [](Query& query) { query.toolchain.family_digest = "f"; }},
      {"family", [](Query& query) { query.family = "softmax"; }},
      {"operation", [](Query& query) { query.operation = "SUM"; }},
      {"dtype", [](Query& query) { query.dtype = "f64"; }},
      {"numerics", [](Query& query) { query.numerics = "reproducible"; }},
      {"launch_context", [](Query& query) { query.launch_context = "graph"; }},
      {"alignment", [](Query& query) { query.alignment = 8; }},
      {"objective", [](Query& query) { query.objective = "energy"; }},
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

TEST_F(CacheStore, CodeOfAnotherCompilerIsAHitThatSaysSo) {
  store_.publish(with_threads(sample_, 32));
  EXPECT_FALSE(store_.find(query_)->other_compiler);
  query_.toolchain.compiler = "nvrtc 12.8";
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_TRUE(hit->other_compiler);
  EXPECT_TRUE(hit->binary);
  sample_.key.toolchain.compiler = "nvrtc 12.8";
  store_.publish(with_threads(sample_, 64));
  sample_.key.toolchain.compiler = "nvrtc 13.1";
  store_.publish(with_threads(sample_, 96));
  EXPECT_EQ(found_threads(query_), 64) << "one's own comes before a newer one";
}

TEST(CacheIdentity, NameAndALittleOfTheMemoryClockDoNotCount) {
  const auto device = [](const std::string& identity) {
    return DeviceRecord{.kind = "cuda", .name = {}, .architecture = "sm_90", .identity = identity};
  };
  const auto same = [&](const std::string& a, const std::string& b) {
    EXPECT_EQ(same_device(device(a), device(b)), same_device(device(b), device(a)));
    return same_device(device(a), device(b));
  };
  const std::string named = "kind=cuda;name=H100 80GB;sm_count=132;l2_bytes=52428800;memory_clock_khz=2619000;";
  EXPECT_TRUE(same(named, "kind=cuda;sm_count=132;l2_bytes=52428800;memory_clock_khz=2619000;"));
  EXPECT_TRUE(same(named, "kind=cuda;sm_count=132;l2_bytes=52428800;memory_clock_khz=2600000;"));
  EXPECT_FALSE(same(named, "kind=cuda;sm_count=132;l2_bytes=52428800;memory_clock_khz=3201000;")) << "HBM3e";
  EXPECT_FALSE(same(named, "kind=cuda;sm_count=114;l2_bytes=52428800;memory_clock_khz=2619000;"));
  EXPECT_FALSE(same(named, "kind=cuda;sm_count=132;l2_bytes=62914560;memory_clock_khz=2619000;"));
  EXPECT_FALSE(same(named, "kind=cuda;sm_count=132;memory_clock_khz=2619000;")) << "a field is missing";
  EXPECT_FALSE(same("kind=host;name=A;sm_count=2;", "kind=host;name=B;sm_count=2;")) << "both have a name";
  EXPECT_FALSE(same("kind=cuda;memory_clock_khz=0;", "kind=cuda;memory_clock_khz=1;"));
  EXPECT_FALSE(same(named, named + "x"));
  DeviceRecord other = device(named);
  other.architecture = "sm_80";
  EXPECT_FALSE(same_device(device(named), other));
}

TEST(CacheIdentity, OptionsOfACompilerFollowItsSize) {
  EXPECT_TRUE(same_options("libnvrtc.so.13.0.88:109338064", "libnvrtc.so.12.8.61:104000000"));
  EXPECT_TRUE(same_options("g++-12:1000", "clang++-14:2000"));
  EXPECT_FALSE(same_options("g++-12:1000", "g++-12:1000+address,undefined"));
  EXPECT_TRUE(same_options("", "g++-12:1000+thread"));
}

/// A device whose driver reads another name and clock shares the row of the device.
TEST_F(CacheStore, ADeviceIsStoredOnceWhateverItsNameAndClock) {
  const std::string rest = "sm_count=132;memory_bus_bits=5120;";
  sample_.key.device.identity = "name=old;memory_clock_khz=2619000;" + rest;
  store_.publish(with_threads(sample_, 32));
  query_.device.identity = "memory_clock_khz=2600000;" + rest;
  EXPECT_EQ(found_threads(query_), 32);
  sample_.key.device.identity = query_.device.identity;
  store_.publish(with_threads(sample_, 64));
  EXPECT_EQ(found_threads(query_), 64);
  EXPECT_THAT(sql(file_, "SELECT count(*), (SELECT count(*) FROM winner) FROM device"), testing::ElementsAre("1|1"));
  constexpr std::chrono::seconds kLease(9), kPatience(5);
  EXPECT_EQ(store_.claim(sample_.key, nullptr, "owner", kLease, kPatience), ClaimState::taken);
  sample_.key.device.identity = "name=old;memory_clock_khz=2619000;" + rest;
  EXPECT_TRUE(store_.is_claimed(sample_.key));
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

TEST_F(CacheStore, WinnersOfOneOperationAreThoseAmongAll) {
  for (const char* family : {"one", "other"})
    for (const char* operation : {"sum", "max"})
      for (const char* dtype : {"f32", "f16"}) {
        Publication publication = sample_;
        publication.key.problem.family = family;
        publication.key.problem.operation = operation;
        publication.key.problem.dtype = dtype;
        store_.publish(publication);
      }
  std::vector<StoredWinner> among_all = store_.winners();
  EXPECT_EQ(among_all.size(), 8u);
  std::erase_if(among_all, [](const StoredWinner& stored) {
    return stored.key.problem.family != "other" || stored.key.problem.operation != "max";
  });
  const std::vector<StoredWinner> found = store_.winners("other", "max");
  ASSERT_EQ(found.size(), 2u);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].id, among_all[i].id);
  EXPECT_THAT(store_.winners("other", "min"), IsEmpty());
}

/// Winners of other shapes.
class CacheNear : public CacheStore {
 protected:
  void publish(std::int64_t rows, std::int64_t columns, int block_threads,
               const std::function<void(Publication&)>& change = {}) const {
    Publication publication = with_threads(sample_, block_threads);
    publication.key.problem.sizes = {{{rows, rows}, {columns, columns}, {1, 1}}};
    publication.winner.tuned_extents = {rows, columns, 1};
    if (change) change(publication);
    store_.publish(publication);
  }

  std::vector<int> near(const RangeRecord& rows, const RangeRecord& columns) const {
    std::vector<int> threads;
    for (const NearWinner& found : store_.find_near(query_, {rows, columns, {1, 1}}))
      threads.push_back(found.winner.candidate.block_threads);
    return threads;
  }
};

TEST_F(CacheNear, FindsWhatWasMeasuredWithinTheExtents) {
  publish(1024, 64, 32);
  publish(4096, 64, 64);
  publish(64, 1024, 96);
  EXPECT_THAT(near({512, 4096}, {16, 256}), testing::UnorderedElementsAre(32, 64));
  EXPECT_THAT(near({1024, 1024}, {64, 64}), testing::ElementsAre(32)) << "both ends are within";
  EXPECT_THAT(near({16, 256}, {512, 4096}), testing::ElementsAre(96));
  EXPECT_THAT(near({1025, 4095}, {64, 64}), IsEmpty());
}

TEST_F(CacheNear, GoesByWhereItWasMeasuredOrByTheExtentsThatItServes) {
  publish(1024, 64, 32, [](Publication& each) { each.key.problem.sizes[0] = {256, 512}; });
  EXPECT_THAT(near({256, 512}, {64, 64}), IsEmpty());
  query_.extents = {300, 64, 1};
  EXPECT_THAT(near({256, 512}, {64, 64}), testing::ElementsAre(32));
  query_.extents = {1, 1, 1};
  const std::vector<NearWinner> found = store_.find_near(query_, {{{1000, 1100}, {1, 64}, {1, 1}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].problem.sizes[0], (RangeRecord{256, 512}));
  EXPECT_EQ(found[0].winner.tuned_extents, (std::array<std::int64_t, 3>{1024, 64, 1}));
}

TEST_F(CacheNear, TheRestOfTheKeyCountsButForAlignmentAndContext) {
  publish(1024, 64, 32);
  query_.alignment = 8;
  query_.launch_context = "graph";
  const std::vector<NearWinner> found = store_.find_near(query_, {{{1, 4096}, {1, 4096}, {1, 1}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].problem.alignment, sample_.key.problem.alignment);
  EXPECT_EQ(found[0].problem.launch_context, sample_.key.problem.launch_context);
  for (const auto& change : {+[](Query& query) { query.dtype = "f64"; },
                             +[](Query& query) { query.objective = "energy"; },
                             +[](Query& query) { query.numerics = "reproducible"; },
                             +[](Query& query) { query.device.identity = "sm_count=1;"; }}) {
    const Query before = query_;
    change(query_);
    EXPECT_THAT(near({1, 4096}, {1, 4096}), IsEmpty());
    query_ = before;
  }
}

TEST_F(CacheNear, OtherDevicesOfTheKindAreAskedForApart) {
  publish(1024, 64, 32, [](Publication& each) { each.key.device.identity = "sm_count=1;"; });
  publish(1024, 64, 64, [](Publication& each) { each.key.device.kind = "host"; });
  publish(1024, 64, 96);
  EXPECT_THAT(near({1024, 1024}, {64, 64}), testing::ElementsAre(96));
  query_.devices = Devices::similar;
  EXPECT_THAT(near({1024, 1024}, {64, 64}), testing::ElementsAre(32));
}

TEST_F(CacheNear, UntunedWinnersAndDamagedRowsAreNone) {
  publish(1024, 64, 32, [](Publication& each) { each.winner.tuned = false; });
  publish(2048, 64, 64);
  publish(4096, 64, 96);
  sql(file_, "UPDATE winner SET median_us = 1e-3 WHERE extent0 = 2048");
  EXPECT_THAT(near({1, 8192}, {1, 4096}), testing::ElementsAre(96));
}

TEST_F(CacheNear, AnotherDriverIsSaid) {
  publish(1024, 64, 32);
  EXPECT_FALSE(store_.find_near(query_, {{{1024, 1024}, {64, 64}, {1, 1}}}).at(0).stale_driver);
  query_.toolchain.driver = "590.2";
  EXPECT_TRUE(store_.find_near(query_, {{{1024, 1024}, {64, 64}, {1, 1}}}).at(0).stale_driver);
}

TEST_F(CacheNear, AMissingFileHasNone) {
  EXPECT_THAT(near({1, 8192}, {1, 4096}), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace hone::cache
