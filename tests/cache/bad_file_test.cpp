#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "cache/store.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

class CacheBadFile : public testing::Test {
 protected:
  StoreFault find_fault(const Store& store, const std::string& words) const {
    return fault_of([&] { store.find(query_); }, store.path(), words);
  }
  StoreFault publish_fault(const Store& store, const std::string& words) const {
    return fault_of([&] { store.publish(sample_); }, store.path(), words);
  }

  TempFolder folder_;
  fs::path file_ = folder_ / "winners.sqlite";
  Store store_{file_};
  Publication sample_ = sample_publication();
  Query query_ = matching_query(sample_);
};

TEST_F(CacheBadFile, DirectoryIsRefused) {
  const Store store(folder_.path());
  EXPECT_EQ(find_fault(store, "it is a directory"), StoreFault::unopenable);
  EXPECT_EQ(publish_fault(store, "it is a directory"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, EmptyPathIsRefused) {
  EXPECT_EQ(find_fault(Store(""), "path is empty"), StoreFault::unopenable);
  EXPECT_EQ(publish_fault(Store(""), "path is empty"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, FifoIsRefusedWithoutBlocking) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(find_fault(store_, "FIFO"), StoreFault::unopenable);
  EXPECT_EQ(publish_fault(store_, "FIFO"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, DeviceIsRefused) {
  EXPECT_EQ(find_fault(Store("/dev/null"), "device"), StoreFault::unopenable);
  EXPECT_EQ(publish_fault(Store("/dev/zero"), "device"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, FileWhoseReadsFailIsNotCalledDamaged) {
  const Store store("/proc/self/mem");
  EXPECT_EQ(find_fault(store, "Input/output error"), StoreFault::failed);
}

TEST_F(CacheBadFile, SocketIsRefused) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, file_.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<const ::sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(find_fault(store_, "socket"), StoreFault::unopenable);
  ::close(descriptor);
}

TEST_F(CacheBadFile, NameThatIsTooLongIsRefused) {
  EXPECT_EQ(find_fault(Store(folder_ / std::string(300, 'x')), "too long"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, FolderThatIsAFileIsRefusedOnPublish) {
  write_text(folder_ / "file", "");
  const Store store(folder_ / "file" / "sub" / "winners.sqlite");
  EXPECT_FALSE(store.find(query_));
  EXPECT_EQ(publish_fault(store, "cannot be made"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, FolderThatMayNotBeMadeIsRefusedOnPublish) {
  fs::permissions(folder_.path(), fs::perms(0555));
  const WithoutRoot guard;
  EXPECT_EQ(publish_fault(Store(folder_ / "new" / "winners.sqlite"), "Permission denied"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, FileThatMayNotBeMadeIsRefusedOnPublish) {
  fs::permissions(folder_.path(), fs::perms(0555));
  const WithoutRoot guard;
  EXPECT_FALSE(store_.find(query_));
  EXPECT_EQ(publish_fault(store_, "Permission denied"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, FolderThatMayNotBeSearchedIsRefused) {
  fs::create_directory(folder_ / "closed");
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(folder_ / "closed", fs::perms(0));
  {
    const WithoutRoot guard;
    EXPECT_EQ(find_fault(Store(folder_ / "closed" / "winners.sqlite"), "Permission denied"), StoreFault::unopenable);
  }
  fs::permissions(folder_ / "closed", fs::perms(0700));
}

TEST_F(CacheBadFile, UnreadableFileIsRefused) {
  store_.publish(sample_);
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(file_, fs::perms(0));
  const WithoutRoot guard;
  EXPECT_EQ(find_fault(store_, "Permission denied"), StoreFault::unopenable);
}

TEST_F(CacheBadFile, ReadOnlyFileInAReadOnlyFolderServes) {
  store_.publish(sample_);
  fs::permissions(folder_.path(), fs::perms(0555));
  fs::permissions(file_, fs::perms(0444));
  const WithoutRoot guard;
  EXPECT_TRUE(store_.find(query_));
  EXPECT_EQ(store_.winners().size(), 1u);
}

TEST_F(CacheBadFile, ReadOnlyFileIsRefusedOnPublish) {
  store_.publish(sample_);
  WithoutRoot::give(folder_.path());
  fs::permissions(file_, fs::perms(0444));
  const WithoutRoot guard;
  EXPECT_EQ(publish_fault(store_, "cannot be written to"), StoreFault::read_only);
}

TEST_F(CacheBadFile, ReadOnlyFolderIsRefusedOnPublish) {
  store_.publish(sample_);
  fs::permissions(folder_.path(), fs::perms(0555));
  WithoutRoot::give(file_);
  const WithoutRoot guard;
  EXPECT_TRUE(store_.find(query_));
  EXPECT_EQ(publish_fault(store_, "cannot be written to"), StoreFault::read_only);
}

TEST_F(CacheBadFile, TextFileIsRefusedAndLeftAlone) {
  for (const std::string& text : {std::string("x"), std::string(5000, 'y')}) {
    write_text(file_, text);
    EXPECT_EQ(find_fault(store_, "file of another kind"), StoreFault::not_a_database);
    EXPECT_EQ(publish_fault(store_, "file of another kind"), StoreFault::not_a_database);
    EXPECT_EQ(read_bytes(file_).size(), text.size());
  }
}

TEST_F(CacheBadFile, DatabaseOfAnotherProgramIsRefusedAndLeftAlone) {
  sql(file_, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
  EXPECT_EQ(find_fault(store_, "it holds a table notes"), StoreFault::foreign);
  EXPECT_EQ(publish_fault(store_, "it holds a table notes"), StoreFault::foreign);
  EXPECT_THAT(sql(file_, "SELECT * FROM notes"), testing::ElementsAre("mine"));
  EXPECT_THAT(sql(file_, "SELECT name FROM sqlite_schema"), testing::ElementsAre("notes"));
}

TEST_F(CacheBadFile, AnotherApplicationIdIsRefused) {
  store_.publish(sample_);
  sql(file_, "PRAGMA application_id = 7");
  EXPECT_EQ(find_fault(store_, "application_id is 7"), StoreFault::foreign);
  EXPECT_EQ(publish_fault(store_, "application_id is 7"), StoreFault::foreign);
}

TEST_F(CacheBadFile, ListsWaitForAFileThatIsLockedForAMoment) {
  store_.publish(sample_);
  auto locker = std::make_unique<Locker>(file_);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    locker.reset();
  });
  EXPECT_EQ(store_.winners().size(), 1u);
  writer.join();
}

TEST_F(CacheBadFile, LockedFileIsBusySoonForReadersAndLaterForWriters) {
  store_.publish(sample_);
  const Locker locker(file_);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(find_fault(store_, "locked by another process"), StoreFault::busy);
  const auto read = std::chrono::steady_clock::now();
  EXPECT_EQ(publish_fault(store_, "locked by another process"), StoreFault::busy);
  const auto written = std::chrono::steady_clock::now();
  EXPECT_GT(written - read, std::chrono::seconds(1));
  EXPECT_LT(read - start, written - read);
}

TEST_F(CacheBadFile, FullDiskLosesNothing) {
  store_.publish(sample_);
  Publication big = sample_;
  big.binary.code = random_code(1'000'000);
  {
    const FileSizeLimit limit(200'000);
    EXPECT_EQ(fault_of([&] { store_.publish(big); }, file_, "too large"), StoreFault::full);
  }
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->binary, sample_.binary);
}

TEST_F(CacheBadFile, FullDiskAtTheFirstPublicationLeavesAnEmptyCache) {
  {
    const FileSizeLimit limit(8192);
    EXPECT_EQ(fault_of([&] { store_.publish(sample_); }, file_, "too large"), StoreFault::full);
  }
  EXPECT_FALSE(store_.find(query_));
  store_.publish(sample_);
  EXPECT_TRUE(store_.find(query_));
}

TEST_F(CacheBadFile, InterruptedWriteIsUndoneByTheNextReader) {
  store_.publish(sample_);
  interrupt_a_write(file_);
  ASSERT_TRUE(fs::exists(file_.native() + "-journal"));
  const std::optional<Hit> hit = store_.find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner, sample_.winner);
  EXPECT_FALSE(fs::exists(file_.native() + "-journal"));
}

TEST_F(CacheBadFile, InterruptedWriteInAReadOnlyPlaceIsAnError) {
  store_.publish(sample_);
  interrupt_a_write(file_);
  fs::permissions(folder_.path(), fs::perms(0555));
  fs::permissions(file_, fs::perms(0444));
  fs::permissions(file_.native() + "-journal", fs::perms(0444));
  const WithoutRoot guard;
  EXPECT_EQ(find_fault(store_, "interrupted write"), StoreFault::unopenable);
}

}  // namespace
}  // namespace hone::cache
