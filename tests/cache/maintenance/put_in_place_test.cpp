#include "cache/maintenance/put_in_place.h"

#include "cache/errors.h"
#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

class CachePutInPlace : public CacheMaintenance {
 protected:
  CachePutInPlace() {
    write_text(file_, "old");
    write_text(fresh_, "new");
  }
  static std::string text_of(const fs::path& file) {
    const std::vector<std::byte> bytes = read_bytes(file);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  fs::path fresh_ = folder_ / "fresh";
};

TEST_F(CachePutInPlace, UnusedNamesGetANumber) {
  EXPECT_EQ(unused_name(file_, ".damaged"), file_.native() + ".damaged");
  write_text(file_.native() + ".damaged", "");
  fs::create_symlink("nowhere", file_.native() + ".damaged.2");
  EXPECT_EQ(unused_name(file_, ".damaged"), file_.native() + ".damaged.3");
}

TEST_F(CachePutInPlace, ReplacesWhatIsThere) {
  put_in_place(fresh_, file_);
  EXPECT_EQ(text_of(file_), "new");
  EXPECT_FALSE(fs::exists(fresh_));
}

TEST_F(CachePutInPlace, RelativeNamesWork) {
  const fs::path old_folder = fs::current_path();
  fs::current_path(folder_.path());
  put_in_place("fresh", "winners.sqlite");
  fs::current_path(old_folder);
  EXPECT_EQ(text_of(file_), "new");
}

TEST_F(CachePutInPlace, KeepsTheOldOneUnderAnotherName) {
  EXPECT_EQ(put_in_place_keeping(fresh_, file_, folder_ / "backup"), folder_ / "backup");
  EXPECT_EQ(text_of(file_), "new");
  EXPECT_EQ(text_of(folder_ / "backup"), "old");
  EXPECT_FALSE(fs::exists(fresh_));
}

TEST_F(CachePutInPlace, BackupThatCannotBeRenamedIsNamed) {
  fs::create_directory(folder_ / "backup");
  EXPECT_EQ(put_in_place_keeping(fresh_, file_, folder_ / "backup"), fresh_);
  EXPECT_EQ(text_of(file_), "new");
  EXPECT_EQ(text_of(fresh_), "old");
}

TEST_F(CachePutInPlace, FailureIsNamedAndChangesNothing) {
  EXPECT_EQ(fault_of([&] { put_in_place(folder_ / "none", file_); }, file_, "cannot be put in its place"),
            StoreFault::read_only);
  fs::create_directory(folder_ / "backup");
  fs::remove(file_);
  EXPECT_EQ(fault_of([&] { put_in_place_keeping(fresh_, file_, folder_ / "backup"); }, file_, "no backup"),
            StoreFault::read_only);
  EXPECT_EQ(text_of(fresh_), "new");
}

TEST_F(CachePutInPlace, ErrorsOfAnUnfinishedFileAreThoseOfTheOneThatItIsFor) {
  const UnfinishedFile unfinished(fresh_);
  const auto fail_with = [&](const fs::path& path) {
    on_behalf_of(unfinished, file_, [&] { throw store_error(path, StoreFault::full, "no room"); });
  };
  EXPECT_EQ(fault_of([&] { fail_with(fresh_); }, file_, "no room"), StoreFault::full);
  EXPECT_EQ(fault_of([&] { fail_with(other_); }, other_, "no room"), StoreFault::full) << "read from";
}

TEST_F(CachePutInPlace, UnfinishedFilesGoUnlessTheyAreKept) {
  write_text(fresh_.native() + "-journal", "");
  { const UnfinishedFile unfinished(fresh_); }
  EXPECT_FALSE(fs::exists(fresh_));
  EXPECT_FALSE(fs::exists(fresh_.native() + "-journal"));
  {
    UnfinishedFile unfinished(file_);
    unfinished.keep();
  }
  EXPECT_TRUE(fs::exists(file_));
}

}  // namespace
}  // namespace hone::cache
