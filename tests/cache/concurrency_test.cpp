#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "cache/store.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

constexpr int kRounds = 25;

/// Round `round` of writer `writer`: the code of the binary says which winner it belongs to.
Publication numbered(int writer, int round) {
  Publication publication = sample_publication();
  publication.winner.candidate.block_threads = 1000 * writer + round;
  publication.binary.code.assign(3000, static_cast<std::byte>(round));
  return publication;
}

bool is_consistent(const Hit& hit) {
  const auto round = static_cast<std::byte>(hit.winner.candidate.block_threads % 1000);
  return hit.binary->code == std::vector<std::byte>(3000, round);
}

/// Publishes and finds by turns, as sessions do. Returns 0 when every hit was whole.
int publish_and_find(const Store& store, int writer) {
  const Query query = matching_query(sample_publication());
  for (int round = 0; round < kRounds; ++round) {
    for (bool done = false; !done;) {
      try {
        store.publish(numbered(writer, round));
        done = true;
      } catch (const StoreError& error) {
        if (error.fault() == StoreFault::busy) continue;  // five seconds may not do on a machine that is very busy
        std::cerr << error.what() << '\n';
        return 1;
      }
    }
    for (int look = 0; look < 4; ++look) {
      try {
        const std::optional<Hit> hit = store.find(query);
        if (!hit || !is_consistent(*hit)) return 2;
      } catch (const StoreError& error) {
        if (error.fault() != StoreFault::busy) return 3;  // a reader may give up on a lock, and only on that
      }
    }
  }
  return 0;
}

TEST(CacheConcurrency, ThreadsPublishAndFindAtOnce) {
  const TempFolder folder;
  const Store store(folder / "new" / "winners.sqlite");
  std::array<int, 4> results{-1, -1, -1, -1};
  {
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < 4; ++writer) {
      threads.emplace_back(
          [&, writer] { results[static_cast<std::size_t>(writer)] = publish_and_find(store, writer); });
    }
  }
  EXPECT_THAT(results, testing::Each(0));
  EXPECT_EQ(store.winners().size(), 1u);
}

TEST(CacheConcurrency, ProcessesPublishAndFindAtOnce) {
  const TempFolder folder;
  const Store store(folder / "new" / "winners.sqlite");
  std::vector<::pid_t> children;
  for (int writer = 0; writer < 4; ++writer) {
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(publish_and_find(store, writer));
    children.push_back(child);
  }
  for (const ::pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(store.winners().size(), 1u);
  EXPECT_THAT(sql(store.path(), "SELECT count(*) FROM binary"), testing::ElementsAre("1"));
}

TEST(CacheConcurrency, WriterWaitsForAReaderThatIsInterrupted) {
  const TempFolder folder;
  const Store store(folder / "winners.sqlite");
  store.publish(sample_publication());
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(store.path().c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM winner", nullptr, nullptr, nullptr), SQLITE_OK);
  const std::jthread goes_on([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    sqlite3_close(reader);
  });
  // Without patience for other writers: on a busy machine readers are interrupted all the time, and a writer that gives
  // up because of them would never come to an end.
  store.note({.misses = {}, .loads = {{99, 1}}}, std::chrono::milliseconds(0));
}

TEST(CacheConcurrency, StoreWorksInAForkedChild) {
  const TempFolder folder;
  const Store store(folder / "winners.sqlite");
  store.publish(sample_publication());
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(store.find(matching_query(sample_publication())) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hone::cache
