// Tests of files that somebody may have left beside a cache file that is only looked at, or copied with it.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "cache/maintenance/verify.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

std::string big_endian(std::size_t number) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(number >> shift & 0xff));
  return text;
}

class CacheHostileJournal : public CacheStore {
 protected:
  CacheHostileJournal() { store_.publish(sample_); }

  void distrust_folder() { fs::permissions(folder_.path(), fs::perms(0777)); }

  /// Ends the journal as one whose transaction spans other files: playing it back, SQLite deletes the file named there.
  void name_super_journal(const fs::path& victim) {
    const std::string name = victim.native();
    std::size_t checksum = 0;
    for (const char c : name) checksum += static_cast<unsigned char>(c);
    std::vector<std::byte> bytes = read_bytes(journal_);
    const std::string tail = big_endian(0x40000000 / 4096 + 1) + name + big_endian(name.size()) + big_endian(checksum) +
                             "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
    for (const char c : tail) bytes.push_back(static_cast<std::byte>(c));
    write_bytes(journal_, bytes);
  }

  /// Every way to look at it, then every way to use it. None may touch the file, its journal or `victim`.
  void expect_refused(const std::string& words) {
    const std::vector<std::byte> before = read_bytes(file_);
    const std::uintmax_t journal_size = fs::file_size(journal_);
    EXPECT_EQ(fault_of([&] { store_.winners(); }, file_, words), StoreFault::unopenable);
    EXPECT_EQ(fault_of([&] { store_.misses(); }, file_, words), StoreFault::unopenable);
    EXPECT_EQ(fault_of([&] { verify(file_); }, file_, words), StoreFault::unopenable);
    query_.code = CodeUse::never;
    EXPECT_EQ(fault_of([&] { store_.find(query_); }, file_, words), StoreFault::unopenable);
    EXPECT_EQ(read_bytes(file_), before);
    ASSERT_TRUE(fs::exists(journal_));
    EXPECT_EQ(fs::file_size(journal_), journal_size);
  }

  fs::path journal_ = file_.native() + "-journal";
  fs::path victim_ = folder_ / "precious.txt";
};

TEST_F(CacheHostileJournal, FileNamedInAJournalIsNeverDeleted) {
  interrupt_a_write(file_);
  write_text(victim_, "precious");
  name_super_journal(victim_);
  expect_refused("names another file");
  query_.code = CodeUse::required;
  EXPECT_EQ(fault_of([&] { store_.find(query_); }, file_, "names another file"), StoreFault::unopenable);
  EXPECT_EQ(fault_of([&] { store_.publish(sample_); }, file_, "names another file"), StoreFault::unopenable);
  EXPECT_TRUE(fs::exists(victim_));
  distrust_folder();
  expect_refused("interrupted");
  EXPECT_TRUE(fs::exists(victim_));
}

TEST_F(CacheHostileJournal, NothingIsUndoneWhereOthersMayWrite) {
  interrupt_a_write(file_);
  distrust_folder();
  expect_refused("interrupted");
}

TEST_F(CacheHostileJournal, FileOfOthersIsReadWithoutWritingAnything) {
  distrust_folder();
  write_text(journal_, "");
  EXPECT_EQ(store_.winners().size(), 1u) << "a journal of no bytes undoes nothing";
  EXPECT_TRUE(fs::exists(journal_));
  const Locker locker(file_);
  EXPECT_EQ(store_.winners().size(), 1u) << "no lock of others is waited for";
}

TEST_F(CacheHostileJournal, NamesThatMeanSomethingInAUriAreNames) {
  const Store store(folder_ / "a?mode=rw&immutable=0#%20 \xc3\xa9.sqlite");
  store.publish(sample_);
  distrust_folder();
  EXPECT_EQ(store.winners().size(), 1u);
}

TEST_F(CacheHostileJournal, FifoBesideTheFileIsRefusedWithoutBlocking) {
  for (const char* suffix : {"-journal", "-wal"}) {
    const fs::path fifo = file_.native() + suffix;
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const unsigned mode : {0700u, 0777u}) {
      fs::permissions(folder_.path(), fs::perms(mode));
      const auto look = [&] {
        ::alarm(20);
        return fault_of([&] { store_.winners(); }, file_, "not a regular file") == StoreFault::unopenable ? 0 : 1;
      };
      EXPECT_EQ(in_child(look), 0) << suffix << " " << mode;
    }
    fs::remove(fifo);
  }
}

TEST_F(CacheHostileJournal, LinkInPlaceOfTheJournalIsNotFollowed) {
  write_text(victim_, "precious");
  fs::create_symlink(victim_, journal_);
  EXPECT_EQ(fault_of([&] { store_.publish(wider(sample_)); }, file_, "not a regular file"), StoreFault::unopenable);
  EXPECT_EQ(read_bytes(victim_).size(), 8u);
}

}  // namespace
}  // namespace hone::cache
