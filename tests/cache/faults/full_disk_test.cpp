// No space: a file that may not grow, and a small file system that is really full.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/faults/ledger.h"
#include "tests/cache/support.h"
#include "tests/support/share.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

/// Publishes one after the other until all have found room or `cases` are over; after each, everything that was
/// committed must be found. Returns how many were refused.
int publish_until_full(Campaign& campaign, const Store& store, Ledger& ledger, int publications) {
  int refused = 0;
  for (int number = 0; number < publications; ++number) {
    const Publication publication = varied_publication(number);
    ledger.begin(publication);
    Outcome outcome = Outcome::right;
    std::string what;
    try {
      store.publish(publication);
      ledger.commit(publication);
    } catch (const StoreError& error) {
      outcome = error.fault() == StoreFault::full ? Outcome::refused : Outcome::wrong;
      what = error.what();
      ++refused;
    }
    std::string found;
    const Outcome aftermath = ledger.compare(store, Damage::none, found);
    campaign.count(std::max(outcome, aftermath), what + found);
  }
  return refused;
}

int max_pages = 0;

/// Many of a campaign of hundreds, and of the share of it that runs.
const long kMany = std::lround(100 * std::min(1.0, test::share()));

/// Called by SQLite for each connection that is opened.
int limit_pages(sqlite3* connection, const char**, const sqlite3_api_routines*) {
  const std::string pragma = fmt::format("PRAGMA max_page_count = {}", max_pages);
  return sqlite3_exec(connection, pragma.c_str(), nullptr, nullptr, nullptr);
}

TEST(CacheFullDisk, FileThatMayNotGrowLosesNothing) {
  Campaign campaign("max_page_count reached at each number of pages");
  const auto hook = reinterpret_cast<void (*)()>(limit_pages);
  ASSERT_EQ(sqlite3_auto_extension(hook), SQLITE_OK);
  int refused = 0;
  for (max_pages = 1; max_pages < 90; ++max_pages) {
    if (!test::in_share(static_cast<std::size_t>(max_pages))) continue;
    const FastFolder folder;
    Ledger ledger;
    refused += publish_until_full(campaign, Store(folder / "winners.sqlite"), ledger, 6);
  }
  sqlite3_cancel_auto_extension(hook);
  EXPECT_GT(refused, kMany);
  EXPECT_GT(campaign.of(Outcome::right), kMany);
}

TEST(CacheFullDisk, SmallFileSystemLosesNothing) {
  constexpr int kNotAllowed = 77;
  Campaign campaign("publications into a tmpfs of 4 KiB, 8 KiB, … that gets full");
  const FastFolder folder;
  const fs::path disk = folder / "disk";
  fs::create_directory(disk);
  const int status = status_of_child([&] {
    if (!may_mount()) return kNotAllowed;
    for (int kib = 4; kib <= 300; kib += 4) {
      if (!test::in_share(static_cast<std::size_t>(kib), 4)) continue;
      if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, fmt::format("size={}k,mode=0700", kib).c_str()) != 0)
        return kNotAllowed;
      Ledger ledger;
      publish_until_full(campaign, Store(disk / "winners.sqlite"), ledger, 8);
      ::umount(disk.c_str());
    }
    return 0;
  });
  if (status == kNotAllowed << 8) GTEST_SKIP() << "this process may not mount a file system";
  EXPECT_EQ(status, 0);
  EXPECT_GT(campaign.of(Outcome::refused), kMany);
  EXPECT_GT(campaign.of(Outcome::right), kMany);
}

}  // namespace
}  // namespace hone::cache
