// Many threads and one cache; this is what runs under ThreadSanitizer.
#include <array>
#include <atomic>
#include <iostream>
#include <thread>

#include "cache/claims.h"
#include "cache/layers.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 32;
constexpr int kKeys = 8;
constexpr int kRoundsOfThread = 3;

/// The code of the binary says which winner it belongs to.
Publication keyed(int key, int round) {
  Publication publication = sample_publication();
  publication.key.problem.operation = "operation " + std::to_string(key);
  publication.winner.candidate.block_threads = round;
  publication.binary.code.assign(500, static_cast<std::byte>(round));
  return publication;
}

bool is_whole(const Hit& hit) {
  const auto round = static_cast<std::byte>(hit.winner.candidate.block_threads);
  return hit.binary && hit.binary->code == std::vector<std::byte>(500, round);
}

/// Does what a session does, and what a person does beside it. Returns the number of hits that were wrong.
int use(Layers& layers, const Store& store, int thread) {
  const std::string owner = new_owner();
  int wrong = 0;
  for (int round = 0; round < kRoundsOfThread; ++round) {
    const Publication publication = keyed((thread + round) % kKeys, thread);
    const Need need{.query = matching_query(publication)};
    const auto claim = layers.claim(publication.key, &need, owner, 10s, 2s);
    if (claim == ClaimState::taken) {
      layers.renew(publication.key, owner, 10s);
      if (thread % 3 == 0) layers.release(publication.key, owner);
    }
    layers.publish(publication);
    layers.note({.key = publication.key, .reason = kUntuned});
    if (const std::optional<Hit> hit = layers.find(need.query); hit && !is_whole(*hit)) ++wrong;
    static_cast<void>(layers.is_claimed(publication.key));
    static_cast<void>(layers.damaged() + layers.left_out());
    try {
      if (const std::optional<Hit> hit = store.find(need.query); hit && !is_whole(*hit)) ++wrong;
      for (const StoredWinner& winner : store.winners()) static_cast<void>(store.tuning(winner.id));
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::busy) ++wrong;
    }
  }
  return wrong;
}

TEST_F(CacheStore, ThirtyTwoThreadsUseItAtOnce) {
  std::atomic<int> reports = 0;
  std::atomic<int> wrong = 0;
  {
    Layers layers({{file_, true}, {folder_ / "none.sqlite", false}}, [&](const LayerFailure&) { ++reports; });
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] { wrong += use(layers, store_, thread); });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(store_.winners().size(), static_cast<std::size_t>(kKeys));
  EXPECT_GE(store_.winners().size(), 1u);
  for (const StoredWinner& winner : store_.winners()) EXPECT_TRUE(store_.tuning(winner.id));
  std::cout << kThreads << " threads; " << reports << " times one of them gave up on a lock\n";
}

}  // namespace
}  // namespace hone::cache
