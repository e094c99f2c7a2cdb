#include "cache/place.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/private_group.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

::mode_t mode_of(const std::filesystem::path& path) {
  struct ::stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0);
  return facts.st_mode & 07777;
}

TEST_F(CacheStore, MadeFilesAndFoldersArePrivate) {
  const ::mode_t old_mask = ::umask(0);
  const Store store(folder_ / "a" / "b" / "winners.sqlite");
  store.publish(sample_);
  ::umask(old_mask);
  EXPECT_EQ(mode_of(store.path()), 0600u);
  EXPECT_EQ(mode_of(folder_ / "a"), 0700u);
  EXPECT_EQ(mode_of(folder_ / "a" / "b"), 0700u);
}

TEST_F(CacheStore, ModeOfAnExistingFileIsKept) {
  write_text(file_, "");
  std::filesystem::permissions(file_, std::filesystem::perms(0640));
  store_.publish(sample_);
  EXPECT_EQ(mode_of(file_), 0640u);
}

TEST_F(CacheStore, PublishLeavesOneFile) {
  store_.publish(sample_);
  const std::filesystem::directory_iterator entries(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(CacheStore, OwnSymbolicLinkIsFollowed) {
  std::filesystem::create_symlink(folder_ / "target.sqlite", file_);
  EXPECT_FALSE(store_.find(query_));
  store_.publish(sample_);
  EXPECT_TRUE(Store(folder_ / "target.sqlite").find(query_));
}

TEST_F(CacheStore, RelativePathIsAnOrdinaryFile) {
  const std::filesystem::path old_folder = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  Store(":memory:").publish(sample_);
  std::filesystem::current_path(old_folder);
  EXPECT_TRUE(Store(folder_ / ":memory:").find(query_));
}

TEST_F(CacheStore, NamesWithOddCharactersWork) {
  const Store store(folder_ / "file: ?mode=ro&#'\"%20 \xc3\xa9.sqlite");
  store.publish(sample_);
  EXPECT_TRUE(store.find(query_));
}

// Who may have written it.

class CacheTrust : public CacheStore {
 protected:
  CacheTrust() { store_.publish(sample_); }

  /// Neither its code is run nor a winner written, but whoever wants may look at it.
  void expect_untrusted(const fs::path& path, const std::string& words) {
    const Store store(path);
    EXPECT_EQ(fault_of([&] { store.find(query_); }, path, words), StoreFault::untrusted);
    EXPECT_EQ(fault_of([&] { store.publish(sample_); }, path, words), StoreFault::untrusted);
    EXPECT_EQ(store.winners().size(), 1u);
    query_.code = CodeUse::never;
    EXPECT_TRUE(store.find(query_)) << "parameters alone run nobody's code";
    query_.code = CodeUse::required;
  }
};

TEST_F(CacheTrust, FileThatOthersMayWrite) {
  for (const unsigned mode : {0602u, 0606u, 0666u}) {
    fs::permissions(file_, fs::perms(mode));
    expect_untrusted(file_, "may write to " + file_.native());
  }
  fs::permissions(file_, fs::perms(0644));
  EXPECT_TRUE(store_.find(query_));
}

TEST_F(CacheTrust, FolderThatOthersMayWrite) {
  for (const unsigned mode : {0777u, 0707u}) {
    fs::permissions(folder_.path(), fs::perms(mode));
    expect_untrusted(file_, "may write to " + folder_.path().native());
  }
}

TEST_F(CacheTrust, FolderFurtherUpThatOthersMayWrite) {
  fs::create_directories(folder_ / "a" / "b");
  fs::rename(file_, folder_ / "a" / "b" / "c.sqlite");
  fs::permissions(folder_ / "a", fs::perms(0777));
  expect_untrusted(folder_ / "a" / "b" / "c.sqlite", "may write to " + (folder_ / "a").native());
  fs::permissions(folder_ / "a", fs::perms(01777));
  EXPECT_TRUE(Store(folder_ / "a" / "b" / "c.sqlite").find(query_)) << "sticky: nobody can take our folder away";
}

TEST_F(CacheTrust, NothingIsMadeWhereOthersMayWrite) {
  fs::permissions(folder_.path(), fs::perms(0777));
  const Store store(folder_ / "new.sqlite");
  EXPECT_FALSE(store.find(query_)) << "what is not there need not be trusted";
  EXPECT_EQ(fault_of([&] { store.publish(sample_); }, store.path(), "may write to"), StoreFault::untrusted);
  EXPECT_FALSE(fs::exists(store.path()));
}

TEST_F(CacheTrust, OwnFileInAStickyFolderServes) {
  fs::permissions(folder_.path(), fs::perms(01777));
  EXPECT_TRUE(store_.find(query_)) << "nobody else can replace it";
  store_.publish(wider(sample_));
  const Store made(folder_ / "new.sqlite");
  made.publish(sample_);
  EXPECT_TRUE(made.find(query_));
  EXPECT_EQ(mode_of(made.path()), 0600u);
}

TEST_F(CacheTrust, ForeignFileOrJournalInAStickyFolderDoesNotServe) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  fs::permissions(folder_.path(), fs::perms(01777));
  const fs::path journal = file_.native() + "-journal";
  interrupt_a_write(file_);
  ASSERT_EQ(::chown(journal.c_str(), 4242, 4242), 0);
  const std::vector<std::byte> before = read_bytes(file_);
  EXPECT_EQ(fault_of([&] { store_.find(query_); }, file_, "belongs to user 4242"), StoreFault::unopenable);
  EXPECT_EQ(fault_of([&] { store_.publish(sample_); }, file_, "belongs to user 4242"), StoreFault::unopenable);
  EXPECT_EQ(read_bytes(file_), before) << "somebody else's pages must not get into it";
  fs::remove(journal);
  ASSERT_EQ(::chown(file_.c_str(), 4242, 4242), 0);
  EXPECT_EQ(fault_of([&] { store_.find(query_); }, file_, "belongs to user 4242"), StoreFault::untrusted);
}

TEST_F(CacheTrust, GroupOfTheOwnerAloneMayWrite) {
  if (!is_private_group(folder_.path(), ::getegid(), ::geteuid())) GTEST_SKIP() << "this user shares its group";
  fs::permissions(folder_.path(), fs::perms(0775));
  fs::permissions(file_, fs::perms(0664));
  EXPECT_TRUE(store_.find(query_));
  store_.publish(wider(sample_));
}

TEST_F(CacheTrust, GroupOfSomebodyElseMayNotWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(folder_.path().c_str(), 0, 4242), 0);
  fs::permissions(folder_.path(), fs::perms(0775));
  expect_untrusted(file_, "its group 4242 may");
  EXPECT_FALSE(is_private_group(folder_.path(), 4242, 0)) << "there is no such group";
}

TEST_F(CacheTrust, HardLink) {
  fs::create_hard_link(file_, folder_ / "other.sqlite");
  expect_untrusted(file_, "has 2 names (hard links)");
  try {
    store_.find(query_);
    FAIL() << "it is trusted";
  } catch (const StoreError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("remove the other names"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("chmod")));
  }
}

TEST_F(CacheTrust, ForeignOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(file_.c_str(), 4242, 4242), 0);
  expect_untrusted(file_, "belongs to user 4242");
  ASSERT_EQ(::chown(file_.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(folder_.path().c_str(), 4242, 4242), 0);
  expect_untrusted(file_, folder_.path().native() + " belongs to user 4242");
}

TEST_F(CacheTrust, FileOfRootServesAnyone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has files of root";
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(file_, fs::perms(0644));
  const WithoutRoot guard;
  EXPECT_TRUE(store_.find(query_));
}

TEST_F(CacheTrust, ForeignSymbolicLink) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give links away";
  const fs::path link = folder_ / "link.sqlite";
  fs::create_symlink(file_, link);
  ASSERT_EQ(::lchown(link.c_str(), 4242, 4242), 0);
  expect_untrusted(link, "belongs to user 4242");
}

TEST_F(CacheTrust, AnotherFileInItsPlaceIsNoticed) {
  const Place place = find_place(file_);
  require_same(place);
  fs::copy_file(file_, folder_ / "copy.sqlite");
  fs::rename(folder_ / "copy.sqlite", file_);
  EXPECT_EQ(fault_of([&] { require_same(place); }, file_, "another file"), StoreFault::untrusted);
  fs::remove(file_);
  EXPECT_EQ(fault_of([&] { require_same(place); }, file_, "another file"), StoreFault::untrusted);
}

TEST_F(CacheTrust, FileThatSomebodyElseMadeMeanwhileIsNoticed) {
  const fs::path path = folder_ / "new.sqlite";
  const Place before = find_place(path);
  EXPECT_FALSE(before.exists);
  write_text(path, "");
  fs::permissions(path, fs::perms(0666));
  EXPECT_EQ(fault_of([&] { require_same(before); }, path, "may write to"), StoreFault::untrusted);
}

TEST(CachePlace, LinksAndDotsAreResolved) {
  const TempFolder folder;
  fs::create_directories(folder / "a" / "b");
  fs::create_directory_symlink("a/b", folder / "short");
  write_text(folder / "a" / "b" / "c", "some text");
  fs::create_symlink("../a/./b/c", folder / "short" / ".." / "d");
  for (const char* way : {"a/b/c", "short/c", "short/../../a/b/c", "a/./b//c"}) {
    const Place place = find_place(folder.path() / way);
    EXPECT_TRUE(place.exists) << way;
    EXPECT_EQ(place.path, fs::canonical(folder.path()) / "a" / "b" / "c") << way;
    EXPECT_EQ(place.distrust, "");
  }
  EXPECT_FALSE(find_place(folder.path() / "short" / "none" / "x").exists);
  EXPECT_EQ(find_place(folder.path() / "short" / "none" / "x").path,
            fs::canonical(folder.path()) / "a" / "b" / "none" / "x");
}

TEST(CachePlace, FileInNoFolderIsRefused) {
  const TempFolder folder;
  const fs::path nowhere = folder / "none" / "x";
  EXPECT_EQ(fault_of([&] { replace_file(nowhere, {}); }, nowhere, "No such file"), StoreFault::unopenable);
  EXPECT_EQ(fault_of([&] { find_place(folder.path() / ""); }, folder.path(), "it is a directory"),
            StoreFault::unopenable);
}

TEST(CachePlace, EndlessLinksAreRefused) {
  const TempFolder folder;
  fs::create_symlink("two", folder / "one");
  fs::create_symlink("one", folder / "two");
  EXPECT_EQ(fault_of([&] { find_place(folder / "one"); }, folder / "one", "too many symbolic links"),
            StoreFault::unopenable);
}

}  // namespace
}  // namespace hone::cache
