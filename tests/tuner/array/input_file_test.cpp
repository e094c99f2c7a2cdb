#include "tuner/array/input_file.h"

#include <gmock/gmock.h>
#include <hone/error.h>

#include <sys/stat.h>

#include <thread>
#include <vector>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using test::Names;
using testing::npy_file;
using testing::TemporaryFolder;
using testing::write_file;

class InputFileTest : public ::testing::Test {
 protected:
  std::string refusal(const std::filesystem::path& path, std::optional<DType> raw_dtype = std::nullopt) {
    try {
      open_input(path, raw_dtype);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_failed);
      return error.what();
    } catch (const CommandError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST_F(InputFileTest, FindsNpyByMagicWhateverItsName) {
  write_file(folder_ / "data.bin", npy_file<float>("<f4", {1, 2, 3}));
  const InputFile file = open_input(folder_ / "data.bin", std::nullopt);
  EXPECT_EQ(file.dtype, DType::f32);
  EXPECT_EQ(file.elements, 3);
  EXPECT_EQ(file.layout, "npy, shape (3,)");
}

TEST_F(InputFileTest, RawFilesNeedADType) {
  write_file(folder_ / "data.bin", std::string(24, '\0'));
  EXPECT_EQ(open_input(folder_ / "data.bin", DType::f64).elements, 3);
  EXPECT_EQ(open_input(folder_ / "data.bin", DType::i32).elements, 6);
  EXPECT_THAT(refusal(folder_ / "data.bin"), Names("--dtype"));
}

TEST_F(InputFileTest, AnEmptyRawFileHasNoElements) {
  write_file(folder_ / "data.bin", "");
  EXPECT_EQ(open_input(folder_ / "data.bin", DType::f64).elements, 0);
}

TEST_F(InputFileTest, LengthsMustFit) {
  write_file(folder_ / "odd.bin", std::string(25, '\0'));
  EXPECT_THAT(refusal(folder_ / "odd.bin", DType::f64), Names("25 bytes", "no multiple", "8 bytes"));
  const std::string whole = npy_file<float>("<f4", {1, 2, 3});
  write_file(folder_ / "short.npy", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(refusal(folder_ / "short.npy"), Names("12", "11 bytes"));
  write_file(folder_ / "long.npy", whole + "x");
  EXPECT_THAT(refusal(folder_ / "long.npy"), Names("13 bytes"));
}

TEST_F(InputFileTest, DTypeMustAgreeWithTheHeader) {
  write_file(folder_ / "data.npy", npy_file<float>("<f4", {1, 2, 3}));
  EXPECT_EQ(open_input(folder_ / "data.npy", DType::f32).elements, 3);
  EXPECT_THAT(refusal(folder_ / "data.npy", DType::f64), Names("f32", "--dtype", "f64"));
}

TEST_F(InputFileTest, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(refusal(folder_ / "none.npy"), Names("no such file"));
  EXPECT_THAT(refusal(folder_.path()), Names("directory"));
  EXPECT_THAT(refusal("/dev/null", DType::f32), Names("device", "terminal"));
  write_file(folder_ / "text.npy", "1 2 3\n and more text");
  EXPECT_THAT(refusal(folder_ / "text.npy"), Names("magic"));
}

TEST_F(InputFileTest, APipeIsReadToItsEnd) {
  const std::filesystem::path pipe = folder_ / "pipe.npy";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::jthread writer([&] { write_file(pipe, npy_file<float>("<f4", std::vector<float>(5000, 2))); });
  const InputFile file = open_input(pipe, std::nullopt);
  EXPECT_EQ(file.elements, 5000);
  const auto device = Device::open("host");
  const DeviceBuffer loaded = load_input(file, device, nullptr);
  EXPECT_EQ(loaded.as<float>()[4999], 2);
}

TEST_F(InputFileTest, AnArchiveSaysWhatToDo) {
  write_file(folder_ / "arrays.npz", std::string("PK\x03\x04", 4) + std::string(100, '\0'));
  EXPECT_THAT(refusal(folder_ / "arrays.npz"), Names("numpy.load(archive)"));
}

}  // namespace
}  // namespace hone::tuner
