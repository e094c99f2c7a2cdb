#include "cache/maintenance/eviction.h"

#include <fmt/format.h>

#include "cache/maintenance/open_file.h"
#include "cache/properties.h"
#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CacheEviction : public CacheMaintenance {
 protected:
  void fill(int count) {
    for (int number = 0; number < count; ++number) put(file_, large(number), kTime + number);
  }
  /// With 20,000 bytes of code and, if it is tuned, as many of trials.
  static Publication large(int number) {
    Publication publication = numbered(number, 20'000);
    if (!publication.tuning) return publication;
    std::string digits;
    for (const std::byte byte : numbered(number + 100, 16'000).binary.code) digits += fmt::format("{:02x}", byte);
    publication.tuning->trials.back().reason = digits;
    return publication;
  }
  EvictionCounts evict_to(std::int64_t goal_bytes, std::int64_t spared = 0) {
    WritingFile file(file_);
    const EvictionCounts counts = evict(file.connection(), goal_bytes, spared);
    file.commit();
    return counts;
  }
  std::int64_t used() {
    const ReadingFile file(file_);
    return used_bytes(file.connection());
  }
  std::vector<std::string> with_code() {
    return sql(file_, "SELECT operation FROM winner WHERE binary IN (SELECT digest FROM binary) ORDER BY created_at");
  }
};

TEST_F(CacheEviction, TrialsGoFirstTheLongestUnusedFirst) {
  fill(6);  // 1, 3 and 5 are tuned
  sql(file_, fmt::format("INSERT INTO usage SELECT id, {}, 1 FROM winner WHERE operation = 'operation 1'", kTime + 99));
  const EvictionCounts counts = evict_to(used() - 30'000);
  EXPECT_EQ(counts.tunings, 2);
  EXPECT_EQ(counts.binaries, 0) << "a winner without code costs every process a compile";
  EXPECT_EQ(counts.winners, 0);
  EXPECT_THAT(sql(file_, "SELECT operation FROM tuning JOIN winner ON winner.id = tuning.winner"),
              ElementsAre("operation 1"))
      << "1 was used since";
  EXPECT_EQ(found(file_, 6), 6);
}

TEST_F(CacheEviction, ThenBinariesTheLongestUnusedFirst) {
  fill(5);
  sql(file_, "DELETE FROM tuning");
  sql(file_, fmt::format("INSERT INTO usage SELECT id, {}, 1 FROM winner WHERE operation = 'operation 0'", kTime + 99));
  sql(file_, "DELETE FROM tuning");
  const EvictionCounts counts = evict_to(used() - 30'000);
  EXPECT_EQ(counts.binaries, 2);
  EXPECT_EQ(counts.tunings, 0);
  EXPECT_EQ(counts.winners, 0);
  EXPECT_THAT(with_code(), ElementsAre("operation 0", "operation 3", "operation 4")) << "0 was used since";
  EXPECT_EQ(found(file_, 5, CodeUse::optional), 5);
}

TEST_F(CacheEviction, ThenUntunedWinnersThenTunedOnes) {
  fill(4);
  const EvictionCounts counts = evict_to(0);
  EXPECT_EQ(counts.binaries, 4);
  EXPECT_EQ(counts.tunings, 2);
  EXPECT_EQ(counts.winners, 4);
  EXPECT_THAT(Store(file_).winners(), IsEmpty());
}

TEST_F(CacheEviction, SparesWhatWasJustPublished) {
  fill(4);
  const std::int64_t spared = std::stoll(sql(file_, "SELECT id FROM winner WHERE operation = 'operation 1'").at(0));
  evict_to(0, spared);
  EXPECT_THAT(content(file_),
              ElementsAre(testing::AllOf(testing::StartsWith("operation 1 "), testing::EndsWith("trials code"))));
}

TEST_F(CacheEviction, NothingGoesWhereThereIsRoom) {
  fill(3);
  const EvictionCounts counts = evict_to(used());
  EXPECT_EQ(counts.binaries + counts.tunings + counts.winners, 0);
}

TEST_F(CacheEviction, PublicationsKeepTheFileToItsSize) {
  constexpr std::int64_t kMaxBytes = 200'000;
  const Store store(file_, kMaxBytes);
  for (int number = 0; number < 40; ++number) {
    store.publish(numbered(number, 20'000));
    EXPECT_LE(used(), kMaxBytes);
    EXPECT_TRUE(store.find(matching_query(numbered(number)))) << "what was just published stays";
  }
  EXPECT_EQ(found(file_, 40, CodeUse::optional), 40) << "code goes before winners";
  EXPECT_GE(with_code().size(), 3u);
}

TEST_F(CacheEviction, LimitOfTheFileGoesBeforeThatOfTheWriter) {
  fill(1);
  {
    WritingFile file(file_);
    write_property(file.connection(), kMaxBytesProperty, 150'000);
    file.commit();
  }
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1} << 30}) {
    const Store store(file_, limit);
    for (int number = 0; number < 12; ++number) store.publish(numbered(number, 20'000));
    EXPECT_LE(used(), 150'000) << limit;
  }
}

TEST_F(CacheEviction, WithoutALimitNothingGoes) {
  const Store store(file_, 0);
  for (int number = 0; number < 12; ++number) store.publish(numbered(number, 20'000));
  EXPECT_EQ(with_code().size(), 12u);
}

TEST_F(CacheEviction, DamagedLimitIsNone) {
  fill(1);
  {
    WritingFile file(file_);
    write_property(file.connection(), kMaxBytesProperty, 1);
    file.commit();
  }
  sql(file_, "UPDATE property SET value = 2 WHERE name = 'max_bytes'");
  for (int number = 0; number < 4; ++number) Store(file_).publish(numbered(number, 20'000));
  EXPECT_EQ(with_code().size(), 4u);
}

}  // namespace
}  // namespace hone::cache
