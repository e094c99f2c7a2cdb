// What lies beside a cache file may be anybody's doing.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <functional>

#include "cache/maintenance/open_file.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

class CacheBadJournal : public CacheStore {
 protected:
  CacheBadJournal() {
    store_.publish(sample_);
    write_text(victim_, "somebody's only copy");
    ::alarm(120);  // what waits for a FIFO waits for ever
  }
  ~CacheBadJournal() override { ::alarm(0); }

  /// A journal without pages, which SQLite plays back. With a name at its end it deletes the file of that name.
  void leave_journal(const std::string& super_journal) const {
    std::vector<std::byte> bytes;
    const auto put = [&](std::uint32_t word) {
      for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::byte>(word >> shift & 0xff));
    };
    const auto put_magic = [&] {
      put(0xd9d505f9);
      put(0x20a163d7);
    };
    put_magic();
    const auto pages = static_cast<std::uint32_t>(fs::file_size(file_) / 4096);
    for (const std::uint32_t word : {0u, 0x1234u, pages, 512u, 4096u}) put(word);
    bytes.resize(512);
    if (!super_journal.empty()) {
      std::uint32_t sum = 0;
      for (const char c : super_journal) {
        bytes.push_back(static_cast<std::byte>(c));
        sum += static_cast<std::uint32_t>(c);
      }
      put(static_cast<std::uint32_t>(super_journal.size()));
      put(sum);
      put_magic();
    }
    write_bytes(journal_, bytes);
  }

  void let_others_write() const { ASSERT_EQ(::chmod(file_.c_str(), 0666), 0); }

  /// Every way to look at a file; each with what it throws.
  void expect_all_to_throw(StoreFault fault, const std::string& words) {
    Query without_code = query_;
    without_code.code = CodeUse::never;
    const std::vector<std::function<void()>> ways{
        [&] { store_.winners(); },
        [&] { store_.find(without_code); },
        [&] { ReadingFile file(file_); },
    };
    for (std::size_t i = 0; i < ways.size(); ++i) EXPECT_EQ(fault_of(ways[i], file_, words), fault) << "way " << i;
  }

  const fs::path journal_ = file_.native() + "-journal";
  const fs::path victim_ = folder_ / "victim.txt";
};

TEST_F(CacheBadJournal, ANameAtItsEndDeletesNothing) {
  for (const bool is_trusted : {true, false}) {
    if (!is_trusted) let_others_write();
    leave_journal(victim_.native());
    expect_all_to_throw(StoreFault::unopenable, "names a further file");
    EXPECT_EQ(fault_of([&] { store_.publish(sample_); }, file_, ""),
              is_trusted ? StoreFault::unopenable : StoreFault::untrusted);
    EXPECT_TRUE(fs::exists(victim_)) << is_trusted;
    EXPECT_TRUE(fs::exists(journal_)) << is_trusted;
  }
}

TEST_F(CacheBadJournal, OfAFileThatOthersCanWriteIsNotPlayedBack) {
  leave_journal("");
  let_others_write();
  const std::vector<std::byte> before = read_bytes(file_);
  expect_all_to_throw(StoreFault::busy, "not trusted enough to undo it");
  EXPECT_TRUE(fs::exists(journal_));
  EXPECT_EQ(read_bytes(file_), before);
}

TEST_F(CacheBadJournal, OfOnesOwnFileIsPlayedBack) {
  leave_journal("");
  EXPECT_EQ(store_.winners().size(), 1u);
  EXPECT_FALSE(fs::exists(journal_));
}

TEST_F(CacheBadJournal, AFifoInItsPlaceIsRefusedWithoutWaiting) {
  for (const char* const suffix : {"-journal", "-wal", "-shm"}) {
    const std::string name = file_.native() + suffix;
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    expect_all_to_throw(StoreFault::unopenable, "no regular file");
    ASSERT_EQ(::unlink(name.c_str()), 0);
  }
}

TEST_F(CacheBadJournal, AFileThatOthersCanWriteIsReadWithoutALock) {
  let_others_write();
  const Locker writer(file_);
  EXPECT_EQ(store_.winners().size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);  // and the victim
}

}  // namespace
}  // namespace hone::cache
