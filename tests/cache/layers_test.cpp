#include "cache/layers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "cache/claims.h"
#include "tests/cache/store_fixture.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using test::Names;
using testing::IsEmpty;
using testing::SizeIs;

class CacheLayers : public testing::Test {
 protected:
  /// The user's file, writable, and two that are not.
  Layers layers() {
    return Layers({{user_, true}, {first_, false}, {second_, false}},
                  [this](const LayerFailure& failure) { reports_.push_back(failure); });
  }
  Publication with_threads(Publication publication, int block_threads) const {
    publication.winner.candidate.block_threads = block_threads;
    return publication;
  }
  int found_threads(Layers& layers) const {
    const std::optional<Hit> hit = layers.find(query_);
    return hit ? hit->winner.candidate.block_threads : 0;
  }

  TempFolder folder_;
  std::filesystem::path user_ = folder_ / "user.sqlite";
  std::filesystem::path first_ = folder_ / "first.sqlite";
  std::filesystem::path second_ = folder_ / "second.sqlite";
  Publication sample_ = sample_publication();
  Query query_ = matching_query(sample_);
  Need need_{.query = query_};
  std::vector<LayerFailure> reports_;
};

TEST_F(CacheLayers, WithoutFilesNothingHappens) {
  Layers none({}, {});
  EXPECT_FALSE(none.find(query_));
  none.publish(sample_);
  none.note({.key = sample_.key, .reason = kUntuned});
  EXPECT_EQ(none.claim(sample_.key, &need_, "a", 1s, 1s), std::nullopt);
  EXPECT_FALSE(none.is_claimed(sample_.key));
  none.renew(sample_.key, "a", 1s);
  none.release(sample_.key, "a");
  EXPECT_EQ(none.left_out(), 0u);
}

TEST_F(CacheLayers, WriterThatStoppedIsWaitedForOnce) {
  Store(user_).publish(sample_);
  Layers all = layers();
  {
    const Locker locker(user_);
    all.publish(wider(sample_));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) all.publish(wider(sample_));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "each would have waited 5 s";
    EXPECT_THAT(reports_, SizeIs(4));
  }
  all.publish(wider(sample_));
  EXPECT_THAT(reports_, SizeIs(4));
  EXPECT_THAT(Store(user_).winners(), SizeIs(2)) << "once it is free, it is written to again";
}

TEST_F(CacheLayers, EarlierLayersComeFirst) {
  Layers all = layers();
  Store(second_).publish(with_threads(sample_, 32));
  EXPECT_EQ(found_threads(all), 32);
  Store(first_).publish(with_threads(sample_, 64));
  EXPECT_EQ(found_threads(all), 64);
  all.publish(with_threads(sample_, 96));
  EXPECT_EQ(found_threads(all), 96);
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CacheLayers, TunedWinnerOfALaterLayerComesBeforeAnUntunedOne) {
  Store(user_).publish(with_threads(untuned_publication(), 32));
  Store(second_).publish(with_threads(sample_, 64));
  Layers all = layers();
  EXPECT_EQ(found_threads(all), 64);
}

TEST_F(CacheLayers, SameDriverOfALaterLayerComesBeforeAStaleOne) {
  Publication stale = with_threads(sample_, 32);
  stale.key.toolchain.driver = "570.0";
  Store(user_).publish(stale);
  Layers all = layers();
  EXPECT_EQ(found_threads(all), 32);
  Store(first_).publish(with_threads(sample_, 64));
  EXPECT_EQ(found_threads(all), 64);
}

TEST_F(CacheLayers, OnlyTheWritableOneIsWritten) {
  Store(first_).publish(untuned_publication());
  const std::vector<std::byte> before = read_bytes(first_);
  {
    Layers all = layers();
    EXPECT_TRUE(all.find(query_));
    all.publish(sample_);
    all.note({.key = sample_.key, .reason = kUntuned});
  }
  EXPECT_EQ(read_bytes(first_), before);
  EXPECT_FALSE(std::filesystem::exists(second_));
  EXPECT_THAT(Store(user_).winners(), SizeIs(1));

  Layers read_only({{second_, false}}, {});
  read_only.publish(sample_);
  EXPECT_EQ(read_only.claim(sample_.key, &need_, "a", 1s, 1s), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(second_));
}

TEST_F(CacheLayers, UnusableOneIsReportedOnceAndLeftOut) {
  write_text(user_, "this is a letter, and no database at all: it is long enough for that");
  Store(first_).publish(sample_);
  Layers all = layers();
  for (int call = 0; call < 5; ++call) EXPECT_TRUE(all.find(query_));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_TRUE(reports_[0].is_first);
  EXPECT_THAT(reports_[0].message, Names(user_.native()));
  EXPECT_EQ(all.left_out(), 1u);
  EXPECT_EQ(all.claim(sample_.key, &need_, "a", 1s, 1s), std::nullopt);
  EXPECT_FALSE(all.is_claimed(sample_.key));
  all.note({.key = sample_.key, .reason = kUntuned});
  EXPECT_THAT(reports_, SizeIs(1)) << "it is not even tried";
}

TEST_F(CacheLayers, NoKindOfUnusableFileIsAskedTwice) {
  const std::vector<std::function<void()>> damages{
      [&] { sql(user_, "CREATE TABLE extra (x)"); },
      [&] { sql(user_, "PRAGMA user_version = 10; DELETE FROM property"); },
      [&] {
        std::vector<std::byte> bytes = read_bytes(user_);
        std::fill(bytes.begin() + 4096, bytes.end(), std::byte{0xee});
        write_bytes(user_, bytes);
      },
      [&] { std::filesystem::permissions(user_, std::filesystem::perms(0666)); },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    std::filesystem::remove(user_);
    Store(user_).publish(sample_);
    damages[i]();
    reports_.clear();
    Layers all = layers();
    EXPECT_FALSE(all.find(query_)) << i;
    EXPECT_FALSE(all.find(query_)) << i;
    EXPECT_THAT(reports_, SizeIs(1)) << i;
  }
}

TEST_F(CacheLayers, StaleTunedWinnerComesBeforeAnUntunedOneOfALaterLayer) {
  Publication stale = with_threads(sample_, 32);
  stale.key.toolchain.driver = "570.0";
  Store(user_).publish(stale);
  Store(first_).publish(with_threads(untuned_publication(), 64));
  Layers all = layers();
  EXPECT_EQ(found_threads(all), 32);
}

TEST_F(CacheLayers, EveryPublicationThatIsLostIsReported) {
  std::filesystem::create_directory(user_);
  Layers all = layers();
  all.publish(sample_);
  all.publish(sample_);
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_TRUE(reports_[0].is_first);
  EXPECT_FALSE(reports_[1].is_first);
  EXPECT_THAT(reports_[1].message, Names("directory"));
  EXPECT_EQ(all.left_out(), 1u);
}

TEST_F(CacheLayers, FileThatIsReadOnlyStillServes) {
  Store(user_).publish(sample_);
  WithoutRoot::give(user_);
  std::filesystem::permissions(user_, std::filesystem::perms(0400));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  const WithoutRoot guard;
  Layers all = layers();
  all.publish(wider(sample_));
  EXPECT_TRUE(all.find(query_));
  EXPECT_EQ(all.claim(sample_.key, &need_, "a", 1s, 1s), std::nullopt);
  EXPECT_THAT(reports_, SizeIs(1));
}

TEST_F(CacheLayers, LockedFileCostsItsTimeOnceAndServesAgainLater) {
  Store(user_).publish(sample_);
  Layers all = layers();
  {
    const Locker locker(user_);
    EXPECT_FALSE(all.find(query_));
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < 100; ++call) EXPECT_FALSE(all.find(query_));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 1s) << "each would have waited 30 ms";
    EXPECT_THAT(reports_, IsEmpty()) << "it may be free in a moment";
    std::this_thread::sleep_for(1100ms);
    EXPECT_FALSE(all.find(query_));
    EXPECT_THAT(reports_, SizeIs(1)) << "it was not";
  }
  std::this_thread::sleep_for(1100ms);
  EXPECT_TRUE(all.find(query_));
  EXPECT_THAT(reports_, SizeIs(1));
}

TEST_F(CacheLayers, ALockSaysNothingOfAClaimAndIsWaitedForOnce) {
  Store(user_).publish(sample_);
  Layers all = layers();
  {
    const Locker locker(user_);
    EXPECT_TRUE(all.is_claimed(sample_.key)) << "perhaps: whoever waits goes on";
    EXPECT_EQ(all.claim(sample_.key, nullptr, "a", 60s, 500ms), ClaimState::locked);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(all.claim(sample_.key, nullptr, "a", 60s, 5s), ClaimState::locked);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "each would have waited 5 s";
  }
  EXPECT_EQ(all.claim(sample_.key, nullptr, "a", 60s, 5s), ClaimState::taken);
}

TEST_F(CacheLayers, NotesThatFindTheFileLockedAreWrittenLater) {
  Store(user_).publish(sample_);
  {
    Layers all = layers();
    const Locker locker(user_);
    all.note({.key = sample_.key, .reason = kUntuned});
  }
  EXPECT_THAT(sql(user_, "SELECT * FROM missed"), IsEmpty()) << "nobody waits for long at the end";
  {
    Layers all = layers();
    {
      const Locker locker(user_);
      all.note({.key = sample_.key, .reason = kUntuned});
    }
    std::this_thread::sleep_for(1100ms);
  }
  EXPECT_THAT(sql(user_, "SELECT weight FROM missed"), ElementsAre("1"));
  EXPECT_THAT(reports_, IsEmpty());
}

using CacheLayersDeathTest = CacheLayers;

/// A program may hold a Session in a static object, which is made before what the first note needs.
TEST_F(CacheLayersDeathTest, NotesAreWrittenAtTheEndOfTheProcess) {
  EXPECT_EXIT(
      {
        static Layers all = layers();
        all.note({.key = sample_.key, .reason = kUntuned});  // written at once
        std::filesystem::remove(user_);
        all.note({.key = sample_.key, .reason = kUntuned});
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_THAT(sql(user_, "SELECT weight FROM missed"), ElementsAre("1"));
}

TEST_F(CacheLayers, DamagedRowsAreCounted) {
  Store(user_).publish(sample_);
  sql(user_, "UPDATE winner SET registers = 1");
  Layers all = layers();
  EXPECT_FALSE(all.find(query_));
  EXPECT_EQ(all.damaged(), 1u);
  Store(user_).publish(sample_);
  sql(user_, "UPDATE binary SET code = x'00'");
  EXPECT_FALSE(all.find(query_));
  EXPECT_EQ(all.damaged(), 2u);
  sql(user_, "DELETE FROM binary");
  EXPECT_FALSE(all.find(query_));
  EXPECT_EQ(all.damaged(), 2u) << "evicted is not damaged";
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CacheLayers, ClaimsGoToTheWritableOne) {
  Layers all = layers();
  EXPECT_EQ(all.claim(sample_.key, &need_, "a", 60s, 20s), ClaimState::taken);
  EXPECT_TRUE(Store(user_).is_claimed(sample_.key));
  EXPECT_TRUE(all.is_claimed(sample_.key));
  all.renew(sample_.key, "a", 60s);
  all.release(sample_.key, "a");
  EXPECT_FALSE(all.is_claimed(sample_.key));
}

TEST_F(CacheLayers, LoadsAreNotedAtTheEndAndOnceADay) {
  Store(user_).publish(sample_);
  for (int run = 0; run < 3; ++run) {
    Layers all = layers();
    EXPECT_TRUE(all.find(query_));
  }
  EXPECT_THAT(sql(user_, "SELECT loads FROM usage"), ElementsAre("1"));
  for (const std::string time : {"used_at - 90000", "used_at + 31536000"}) {
    sql(user_, "UPDATE usage SET loads = 1, used_at = " + time);
    Layers all = layers();
    EXPECT_TRUE(all.find(query_));
  }
  EXPECT_THAT(sql(user_, "SELECT loads FROM usage"), ElementsAre("2")) << "a time in the future is wrong, too";
}

TEST_F(CacheLayers, MissesOfABurstAreWrittenTogether) {
  {
    Layers all = layers();
    for (int miss = 0; miss < 10; ++miss) {
      MissRecord record{.key = sample_.key, .reason = kUntuned};
      record.key.problem.alignment = miss;
      all.note(record);
    }
    const std::vector<std::string> written = sql(user_, "SELECT count(*) FROM missed");
    EXPECT_GE(std::stoi(written.at(0)), 1);
  }
  EXPECT_THAT(sql(user_, "SELECT count(*) FROM missed"), ElementsAre("10"));
}

TEST_F(CacheLayers, ForkedChildWritesNothingAtItsEnd) {
  Store(user_).publish(sample_);
  auto all = std::make_unique<Layers>(std::vector<LayerPlace>{{user_, true}}, Layers::Report());
  EXPECT_TRUE(all->find(query_));
  EXPECT_EQ(in_child([&] {
              all.reset();
              return 0;
            }),
            0);
  EXPECT_THAT(sql(user_, "SELECT * FROM usage"), IsEmpty());
  all.reset();
  EXPECT_THAT(sql(user_, "SELECT loads FROM usage"), ElementsAre("1"));
}

TEST_F(CacheStore, OfTwoWithoutTheirCodeTheBetterServesWhoCanCompile) {
  query_.code = CodeUse::optional;
  store_.publish(with_threads(wider(sample_), 32));
  store_.publish(with_threads(sample_, 64));
  sql(file_, "DELETE FROM binary");
  EXPECT_EQ(found_threads(query_), 64) << "the newest";
  Publication stale = with_threads(wider(sample_), 96);
  stale.key.toolchain.driver = "570.0";
  store_.publish(stale);
  EXPECT_EQ(found_threads(query_), 64) << "the same driver without its code before another with it";
}

TEST_F(CacheStore, MoreStatementsThanArePooledAreGivenBack) {
  store_.publish(sample_);
  Connection connection(file_, Access::read);
  std::vector<Statement> statements;
  for (int number = 0; number < 50; ++number)
    statements.push_back(connection.prepare("SELECT " + std::to_string(number)));
  statements.clear();
  EXPECT_TRUE(connection.prepare("SELECT 49").step());
}

TEST_F(CacheStore, WinnerWithoutItsCodeServesWhoCanCompile) {
  store_.publish(sample_);
  sql(file_, "DELETE FROM binary");
  EXPECT_FALSE(store_.find(query_));
  query_.code = CodeUse::optional;
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner, sample_.winner);
  EXPECT_FALSE(hit->binary);
  store_.publish(with_threads(wider(untuned_publication()), 64));
  EXPECT_EQ(found_threads(query_), sample_.winner.candidate.block_threads) << "tuned comes before untuned with code";
  store_.publish(with_threads(wider(sample_), 96));
  EXPECT_EQ(found_threads(query_), 96) << "but with code comes before without";
  query_.code = CodeUse::never;
  EXPECT_FALSE(store_.find(query_)->binary);
}

}  // namespace
}  // namespace hone::cache
