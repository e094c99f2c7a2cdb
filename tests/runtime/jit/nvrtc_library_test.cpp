#include "runtime/jit/nvrtc_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include <hone/error.h>

#include "runtime/jit/nvrtc_compiler.h"
#include "tests/support/names.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using test::Names;
using testing::IsSupersetOf;
using testing::Not;

class NvrtcSearching : public testing::Test {
 protected:
  NvrtcSearching() {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("hone_nvrtc_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~NvrtcSearching() override {
    for (const auto& [name, value] : saved_) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
    fs::remove_all(folder_);
  }

  void set_environment(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    saved_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    setenv(name.c_str(), value.c_str(), 1);
  }

  fs::path write(const fs::path& path, const std::string& text) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
    return folder_ / path;
  }

  std::string message_of_compile(const NvrtcSearch& search) const {
    try {
      NvrtcCompiler(search).compile({.name = "k", .source = "", .headers = {}, .entries = {}}, "sm_90");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  fs::path folder_;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

TEST_F(NvrtcSearching, TakesTheVersionedNameFirst) {
  write("libnvrtc.so", "plain");
  const fs::path versioned = write(nvrtc_file_names().front(), "versioned");
  const NvrtcSearch search{.chosen = {}, .folders = {folder_}};
  EXPECT_EQ(search.find(), versioned);
}

TEST_F(NvrtcSearching, TakesTheFirstFolderThatHasIt) {
  const fs::path first = write("b/libnvrtc.so", "");
  write("c/libnvrtc.so", "");
  const NvrtcSearch search{.chosen = {}, .folders = {folder_ / "a", folder_ / "b", folder_ / "c"}};
  EXPECT_EQ(search.find(), first);
}

TEST_F(NvrtcSearching, ResolvesLinks) {
  const fs::path real = write("real/libnvrtc.so.13.0.88", "12345");
  fs::create_symlink(real, folder_ / "libnvrtc.so");
  const NvrtcSearch search{.chosen = {}, .folders = {folder_}};
  EXPECT_EQ(search.find(), real);
  EXPECT_EQ(NvrtcCompiler(search).identity(), "libnvrtc.so.13.0.88:5");
}

TEST_F(NvrtcSearching, AChosenFileOrFolderIsTheOnlyPlace) {
  const fs::path file = write("mine/libnvrtc.so", "");
  EXPECT_EQ((NvrtcSearch{.chosen = file, .folders = {}}).find(), file);
  EXPECT_EQ((NvrtcSearch{.chosen = folder_ / "mine", .folders = {}}).find(), file);
  EXPECT_EQ((NvrtcSearch{.chosen = folder_ / "other", .folders = {folder_ / "mine"}}).find(), fs::path());
}

TEST_F(NvrtcSearching, ReadsTheEnvironment) {
  set_environment("HONE_NVRTC", "/chosen/libnvrtc.so");
  set_environment("CUDA_HOME", "/home/cuda");
  set_environment("CUDA_PATH", "/path/cuda");
  set_environment("HONE_NVRTC_PATH", "/wheels");
  set_environment("LD_LIBRARY_PATH", "/first::relative:/second");
  const NvrtcSearch search = NvrtcSearch::from_environment();
  EXPECT_EQ(search.chosen, "/chosen/libnvrtc.so");
  ASSERT_GE(search.folders.size(), 7U);
  EXPECT_THAT(std::vector<fs::path>(search.folders.begin(), search.folders.begin() + 7),
              testing::ElementsAre("/home/cuda/lib64", "/home/cuda/lib", "/path/cuda/lib64", "/path/cuda/lib",
                                   "/wheels", "/first", "/second"));
  EXPECT_THAT(search.folders, IsSupersetOf({fs::path("/usr/local/cuda/lib64"), fs::path("/usr/lib64")}));
  EXPECT_THAT(search.folders, Not(Contains(fs::path("relative"))));
}

TEST_F(NvrtcSearching, TheHeadersAreThoseOfTheNearestFolderAboveTheLibrary) {
  const fs::path library = write("toolkit/targets/lib/libnvrtc.so", "");
  write("include/some.h", "");
  write("toolkit/include/some.h", "");
  const std::string include = folder_ / "toolkit/include";
  EXPECT_THAT(cuda_include_folders(library, "some.h"), testing::ElementsAre(include));
  write("toolkit/include/cccl/cuda/std/version", "");
  EXPECT_THAT(cuda_include_folders(library, "some.h"), testing::ElementsAre(include, include + "/cccl"));
  EXPECT_THAT(cuda_include_folders(library, "no_such.h"), testing::IsEmpty());
  EXPECT_THAT(cuda_include_folders("", "some.h"), testing::IsEmpty());
}

TEST_F(NvrtcSearching, NothingFoundNamesThePlacesAndTheWayOut) {
  const NvrtcSearch search{.chosen = {}, .folders = {folder_ / "a", folder_ / "b"}};
  EXPECT_EQ(NvrtcCompiler(search).identity(), "");
  const std::string message = message_of_compile(search);
  EXPECT_THAT(message, Names((folder_ / "a").native()));
  EXPECT_THAT(message, Names((folder_ / "b").native()));
  EXPECT_THAT(message, Names(nvrtc_file_names().front()));
  EXPECT_THAT(message, Names("set", "HONE_NVRTC"));
}

TEST_F(NvrtcSearching, AWrongHoneNvrtcIsNamed) {
  EXPECT_THAT(message_of_compile({.chosen = "/no/such/libnvrtc.so", .folders = {}}),
              Names("HONE_NVRTC=/no/such/libnvrtc.so"));
}

TEST_F(NvrtcSearching, AFileThatIsNoLibraryIsNamed) {
  const fs::path file = write("libnvrtc.so", "not a library");
  EXPECT_THAT(message_of_compile({.chosen = file, .folders = {}}), Names(file.native()));
}

TEST_F(NvrtcSearching, AnotherLibraryIsNoNvrtc) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &libc), 0);
  const std::string message = message_of_compile({.chosen = libc.dli_fname, .folders = {}});
  EXPECT_THAT(message, Names("NVRTC", "nvrtcVersion"));
}

}  // namespace
}  // namespace hone
