// Damaged files: whatever they hold, nothing is served that was never committed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <span>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/failing_allocator.h"
#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/faults/ledger.h"
#include "tests/cache/support.h"
#include "tests/support/share.h"

namespace hone::cache {
namespace {

using Bytes = std::vector<std::byte>;

/// A cache whose file is damaged in place, looked into, and put right again.
class CacheCorruption : public testing::Test {
 protected:
  void publish(const Publication& publication) {
    store_.publish(publication);
    ledger_.commit(publication);
  }

  /// From here on the file is what `intact_` says.
  void take_as_intact() {
    intact_ = read_bytes(store_.path());
    descriptor_ = ::open(store_.path().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(descriptor_, 0);
  }

  void put(std::size_t offset, std::span<const std::byte> bytes) const {
    if (::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<::off_t>(offset)) !=
        static_cast<::ssize_t>(bytes.size()))
      throw std::runtime_error("the file cannot be damaged");
  }

  void restore(std::size_t offset, std::size_t size) const { put(offset, std::span(intact_).subspan(offset, size)); }

  /// One key in turn, and from time to time what inspection reads.
  void look(Campaign& campaign, int number) const {
    const CheapAllocations cheap;
    std::string what;
    const std::size_t key = static_cast<std::size_t>(number) % ledger_.size();
    Outcome outcome = ledger_.compare(store_, key, Damage::any, what);
    if (number % 32 == 0) outcome = std::max(outcome, inspect(what));
    campaign.count(outcome, fmt::format("case {}: {}", number, what));
  }

  Outcome inspect(std::string& what) const {
    try {
      for (const StoredWinner& winner : store_.winners()) static_cast<void>(store_.tuning(winner.id));
    } catch (const StoreError&) {
      return Outcome::refused;
    }
    return ledger_.compare_listed(store_, Damage::any, what);
  }

  void TearDown() override {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    EXPECT_TRUE(read_bytes(store_.path()) == intact_) << "a lookup changed the file";
  }

  FastFolder folder_;
  Store store_{folder_ / "winners.sqlite"};
  Ledger ledger_;
  Bytes intact_;
  int descriptor_ = -1;
};

/// A small file, and one of four parts of its bits.
class CacheSmallFile : public CacheCorruption, public testing::WithParamInterface<int> {
 protected:
  static constexpr int kParts = 4;

  CacheSmallFile() {
    for (const int number : {0, 1}) {
      Publication publication = varied_publication(number);
      publication.binary.code.resize(4);
      publish(publication);
    }
    sql(store_.path(), "PRAGMA page_size = 512; VACUUM");
    take_as_intact();
    std::string what;
    EXPECT_EQ(ledger_.compare(store_, Damage::none, what), Outcome::right) << what;
  }
};

TEST_P(CacheSmallFile, NoFlippedBitIsServed) {
  const int stride = is_sanitized() ? 8 : stride_of(8);  // one bit of each byte
  Campaign campaign(fmt::format("each {} bit of a file of {} bytes flipped, part {} of {}",
                                stride == 1 ? "single" : fmt::format("{}th", stride), intact_.size(), GetParam() + 1,
                                kParts));
  const int cases = static_cast<int>(8 * intact_.size()) / stride;
  campaign.run(GetParam() * cases / kParts, (GetParam() + 1) * cases / kParts, [&](int number) {
    if (is_sanitized() && !test::in_share(static_cast<std::size_t>(number))) return;
    const int bit = number * stride + number % stride;
    const auto offset = static_cast<std::size_t>(bit / 8);
    const std::byte flipped = intact_[offset] ^ static_cast<std::byte>(1 << bit % 8);
    put(offset, std::span(&flipped, 1));
    look(campaign, number);
    restore(offset, 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Parts, CacheSmallFile, testing::Range(0, 4));

class CacheLargerFile : public CacheCorruption {
 protected:
  CacheLargerFile() {
    for (const int number : {0, 1, 3}) publish(varied_publication(number));
    older_ = read_bytes(store_.path());
    publish(retuned(varied_publication(1), 1));
    take_as_intact();
  }

  /// Damages the file in one of the ways in which disks and programs do, and returns where: offset and size.
  std::pair<std::size_t, std::size_t> damage(std::mt19937& random) const {
    constexpr std::size_t kPageBytes = 4096;
    const std::size_t pages = intact_.size() / kPageBytes;
    const std::size_t offset = random() % intact_.size();
    const std::size_t page = offset / kPageBytes * kPageBytes;
    const std::size_t length = std::min(intact_.size() - offset, std::size_t{1} + random() % 600);
    switch (random() % 6) {
      case 0:
        return overwrite(offset, random_bytes(random, std::min<std::size_t>(length, 1 + random() % 4)));
      case 1:
        return overwrite(offset, random_bytes(random, length));
      case 2:
        return overwrite(offset, Bytes(length, random() % 2 == 0 ? std::byte{0} : std::byte{0xff}));
      case 3:  // a page in the place of another
        return overwrite(page, part(intact_, random() % pages * kPageBytes, kPageBytes));
      case 4:  // a page, or a sector of it, that was never written
        if (page + kPageBytes > older_.size()) return overwrite(page, Bytes(kPageBytes, std::byte{0}));
        return random() % 2 == 0 ? overwrite(page, part(older_, page, kPageBytes))
                                 : overwrite(offset / 512 * 512, part(older_, offset / 512 * 512, 512));
      default:  // the pointers at the start of a page
        return overwrite(page + random() % 16, random_bytes(random, 1 + random() % 2));
    }
  }

 private:
  std::pair<std::size_t, std::size_t> overwrite(std::size_t offset, const Bytes& bytes) const {
    put(offset, bytes);
    return {offset, bytes.size()};
  }

  static Bytes part(const Bytes& bytes, std::size_t offset, std::size_t size) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(size)};
  }

  static Bytes random_bytes(std::mt19937& random, std::size_t size) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }

  Bytes older_;
};

TEST_F(CacheLargerFile, NoRandomDamageIsServed) {
  Campaign campaign("random damage");
  const int cases = scaled(100'000);
  campaign.run(0, cases, [&](int number) {
    std::mt19937 random(random_seed(number, cases));
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::size_t count = 1 + random() % 3; count > 0; --count) places.push_back(damage(random));
    look(campaign, number);
    for (const auto& [offset, size] : places) restore(offset, size);
  });
}

TEST_F(CacheLargerFile, NoTruncatedFileIsServed) {
  Campaign campaign("truncated: each length up to a page, and random ones");
  constexpr int kPageBytes = 4096;
  const Points lengths(kPageBytes, stride_of(1));
  const int random_lengths = scaled(4000);
  std::mt19937 random(random_seed(3, 1));
  campaign.run(0, lengths.count() + random_lengths, [&](int number) {
    const std::size_t length =
        number < lengths.count() ? static_cast<std::size_t>(lengths[number]) : random() % intact_.size();
    ASSERT_EQ(::ftruncate(descriptor_, static_cast<::off_t>(length)), 0);
    look(campaign, number);
    restore(length, intact_.size() - length);
  });
}

TEST_F(CacheLargerFile, DamagedFileIsWrittenToOrRefusedButNeverServesWrongly) {
  Campaign campaign("publication into a file with random damage");
  const Publication next = varied_publication(5);
  ledger_.begin(next);
  const int cases = scaled(4000);
  campaign.run(0, cases, [&](int number) {
    std::mt19937 random(random_seed(number, cases) + 1'000'000);
    damage(random);
    bool is_refused = false;
    try {
      store_.publish(next);
    } catch (const StoreError&) {
      is_refused = true;
    }
    std::string what;
    Outcome outcome = ledger_.compare(store_, Damage::any, what);
    if (is_refused) outcome = std::max(outcome, Outcome::refused);
    campaign.count(outcome, what);
    std::filesystem::remove(store_.path().native() + "-journal");
    ASSERT_EQ(::ftruncate(descriptor_, static_cast<::off_t>(intact_.size())), 0);
    restore(0, intact_.size());
  });
}

}  // namespace
}  // namespace hone::cache
