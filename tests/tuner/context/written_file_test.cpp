#include "tuner/context/written_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <hone/error.h>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using test::Names;

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class WrittenFileTest : public ::testing::Test {
 protected:
  void write(const fs::path& path, std::string_view text, const std::vector<fs::path>& read_files = {}) {
    WrittenFile file(path, standard_output_, read_files);
    file.stream() << text;
    file.finish();
  }
  std::string failure_of(const fs::path& path) {
    try {
      write(path, std::string(1 << 20, 'x'));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_failed);
      return error.what();
    }
    return "it was written";
  }
  std::string refusal_of(const fs::path& path, const std::vector<fs::path>& read_files = {}) {
    try {
      write(path, "floats", read_files);
    } catch (const CommandError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "it was written";
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  testing::TemporaryFolder folder_;
  std::ostringstream standard_output_;
};

TEST_F(WrittenFileTest, ARegularFileIsReplacedWhenItIsWholeAndKeepsItsMode) {
  const fs::path path = folder_ / "a";
  testing::write_file(path, "before");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  {
    WrittenFile abandoned(path, standard_output_);
    abandoned.stream() << "half" << std::flush;
    EXPECT_EQ(content_of(path), "before");
  }
  EXPECT_EQ(files(), 1U);
  write(path, "after");
  EXPECT_EQ(content_of(path), "after");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_EQ(files(), 1U);
}

TEST_F(WrittenFileTest, WhatIsBeingWrittenHasNoNameYet) {
  const fs::path path = folder_ / "out.npy";
  WrittenFile file(path, standard_output_);
  file.stream() << "floats" << std::flush;
  if (files() != 0) GTEST_SKIP() << "the file system has no files without a name";
  write(path, "of another process");
  file.finish();
  EXPECT_EQ(content_of(path), "floats");
  EXPECT_EQ(files(), 1U);
}

TEST_F(WrittenFileTest, ALinkStaysAndItsTargetIsReplaced) {
  fs::create_directory(folder_ / "elsewhere");
  testing::write_file(folder_ / "elsewhere" / "a", "before");
  fs::create_symlink("elsewhere/a", folder_ / "inner");
  fs::create_symlink(folder_ / "inner", folder_ / "link");
  write(folder_ / "link", "after");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "inner"));
  EXPECT_EQ(content_of(folder_ / "elsewhere" / "a"), "after");

  fs::create_symlink("elsewhere/new", folder_ / "dangling");
  write(folder_ / "dangling", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(content_of(folder_ / "elsewhere" / "new"), "new");
}

TEST_F(WrittenFileTest, ADatabaseIsNotReplacedUnderAnyName) {
  const std::string content("SQLite format 3\0 and the rest", 30);
  const fs::path path = folder_ / "cache.sqlite";
  testing::write_file(path, content);
  fs::create_symlink("cache.sqlite", folder_ / "link");
  fs::create_hard_link(path, folder_ / "other name");
  for (const char* const name : {"cache.sqlite", "link", "other name"})
    EXPECT_THAT(refusal_of(folder_ / name), Names(name, "database", "SQLite", "another file"));
  EXPECT_EQ(content_of(path), content);
  EXPECT_EQ(files(), 3U);

  WrittenFile file(folder_ / "new.sqlite", standard_output_);
  file.stream() << "floats";
  testing::write_file(folder_ / "new.sqlite", content);  // the command's session has made it
  EXPECT_THROW(file.finish(), CommandError);
  EXPECT_EQ(content_of(folder_ / "new.sqlite"), content);
}

TEST_F(WrittenFileTest, WhatBelongsToADatabaseIsNotReplaced) {
  testing::write_file(folder_ / "cache.sqlite", std::string_view("SQLite format 3\0 and the rest", 30));
  fs::create_symlink("cache.sqlite-journal", folder_ / "link");
  for (const char* const name : {"cache.sqlite-journal", "cache.sqlite-wal", "cache.sqlite-shm", "cache.sqlite.machine",
                                 "cache.sqlite.host.tuning", "cache.sqlite.cuda:0.tuning", "link"})
    EXPECT_THAT(refusal_of(folder_ / name), Names(name, "database", "cache.sqlite'", "another file"));
  EXPECT_EQ(files(), 2U);

  for (const char* const name : {"other-journal", "-wal", ".tuning", "host.tuning", "cache.sqlite.npy"})
    write(folder_ / name, "floats");
  EXPECT_EQ(files(), 7U);
}

TEST_F(WrittenFileTest, ASourceIsNotReplacedUnderAnyName) {
  const fs::path source = folder_ / "axpy.cu";
  testing::write_file(source, "code");
  fs::create_symlink("axpy.cu", folder_ / "link");
  fs::create_hard_link(source, folder_ / "other name");
  for (const char* const name : {"axpy.cu", "link", "other name"})
    EXPECT_THAT(refusal_of(folder_ / name, {folder_ / "no.toml", source}), Names(name, "read", "another file"));
  EXPECT_EQ(content_of(source), "code");
  write(folder_ / "axpy_tuned.cu", "code", {source});
}

TEST_F(WrittenFileTest, AFifoIsWrittenToAndStays) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = content_of(fifo); });
  write(fifo, "through it");
  reader.join();
  EXPECT_EQ(read, "through it");
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST_F(WrittenFileTest, ADeviceIsWrittenToAndSoIsWhatALinkToOneLeadsTo) {
  fs::create_symlink("/dev/null", folder_ / "link");
  for (const fs::path& path : {fs::path("/dev/null"), folder_ / "link"}) {
    write(path, "gone");
    EXPECT_TRUE(fs::is_character_file(path));
  }
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(files(), 1U);
}

TEST_F(WrittenFileTest, ADashIsTheStandardOutput) {
  write("-", "one");
  write("/dev/stdout", "two");
  EXPECT_EQ(standard_output_.str(), "onetwo");
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(WrittenFileTest, AFullDiskIsAnErrorWithTheReason) {
  EXPECT_THAT(failure_of("/dev/full"), Names("space", "left"));
  EXPECT_THAT(failure_of(folder_ / "no" / "a"), Names("No such", "file"));
  EXPECT_THAT(failure_of(folder_.path()), Names("directory"));
}

}  // namespace
}  // namespace hone::tuner
