// Opens any bytes as a cache file: looks up, lists, verifies, repairs, publishes. Only StoreErrors may come of it, and
// only winners that were once stored.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "cache/maintenance/repair.h"
#include "cache/maintenance/verify.h"
#include "cache/store.h"
#include "tests/fuzz/seeds.h"

namespace hone::cache {
namespace {

/// Returns true if it happened. Anything but a StoreError ends the process.
bool attempt(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const StoreError&) {
    return false;
  }
}

bool is_seed(const WinnerRecord& winner) {
  return std::ranges::any_of(seed_publications(), [&](const Publication& p) { return p.winner == winner; });
}

void look_up(const Store& store, const Publication& seed, CodeUse code) {
  Query query = query_of(seed);
  query.code = code;
  std::optional<Hit> hit;
  attempt([&] { hit = store.find(query); });
  if (!hit) return;
  if (hit->winner != seed.winner) fail("a lookup returned a winner that was never stored under its key");
  if (hit->binary && *hit->binary != seed.binary) fail("a lookup returned code that was never stored");
}

void inspect(const Store& store) {
  std::vector<StoredWinner> winners;
  attempt([&] { winners = store.winners(); });
  for (const StoredWinner& stored : winners) {
    if (!is_seed(stored.winner)) fail("a winner is listed that was never stored");
    attempt([&] { static_cast<void>(store.tuning(stored.id)); });
  }
}

void publish(const Store& store) {
  Publication fresh = seed_publications().front();
  fresh.key.problem.operation = "max";
  if (!attempt([&] { store.publish(fresh); })) return;
  const std::optional<Hit> hit = store.find(query_of(fresh));
  if (!hit || hit->winner != fresh.winner || hit->binary != fresh.binary) fail("what was just published is not found");
}

}  // namespace
}  // namespace hone::cache

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hone::cache;
  const Store store(write_work_file({data, size}));
  for (const Publication& seed : seed_publications()) look_up(store, seed, CodeUse::required);
  look_up(store, seed_publications().front(), CodeUse::never);
  inspect(store);
  attempt([&] { static_cast<void>(verify(store.path())); });
  // Each other input is repaired before it is written to.
  const bool is_repaired = size % 2 == 0 && attempt([&] { repair(store.path()); });
  if (is_repaired) {
    inspect(store);
    if (!verify(store.path()).intact()) fail("a repaired file is damaged");
  }
  publish(store);
  return 0;
}
