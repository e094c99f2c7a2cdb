#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "cache/fork_gate.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

/// Runs in a child: returns 0 if it could read and write.
int use(const Store& store, const Publication& publication) {
  ::alarm(60);  // a lock that nobody can release any more ends the child, and so the test
  try {
    if (!store.find(matching_query(publication))) return 1;
    store.publish(publication);
    return store.find(matching_query(publication)) ? 0 : 2;
  } catch (const StoreError& error) {
    if (error.fault() == StoreFault::busy) return 0;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, error.what(), std::strlen(error.what()));
    return 3;
  }
}

TEST_F(CacheStore, ForkWhileOtherThreadsUseTheCacheLeavesAUsableOne) {
  store_.publish(sample_);
  std::atomic<bool> done = false;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Publication own = sample_;
      own.key.problem.operation = "operation " + std::to_string(thread);
      while (!done) {
        try {
          store_.find(query_);
          store_.publish(own);
        } catch (const StoreError&) {
          // Busy: the children write, too.
        }
      }
    });
  }
  for (int round = 0; round < 40; ++round) {
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(use(store_, sample_));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "round " << round;
  }
  done = true;
}

TEST(CacheForkGate, ForkWaitsUntilTheFileIsClosed) {
  std::atomic<bool> is_closed = false;
  std::atomic<bool> is_open = false;
  std::jthread reader([&] {
    {
      const ForkGate gate;
      is_open = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      is_closed = true;
    }
  });
  while (!is_open) std::this_thread::yield();
  const ::pid_t child = ::fork();
  if (child == 0) {
    { const ForkGate usable; }
    ::_exit(is_closed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child saw an open file";
}

}  // namespace
}  // namespace hone::cache
