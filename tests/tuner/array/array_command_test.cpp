// hone reduce --axis, hone softmax and hone transpose on files, on the host device.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

#include "cache/store.h"
#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/array/npy.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using test::Names;
using testing::isolated_environment;
using testing::run_hone;
using Json = nlohmann::json;
using Shape = std::vector<std::int64_t>;

class ArrayCommand : public ::testing::Test {
 protected:
  template <class T>
  std::string save(const std::string& name, const Shape& shape, const std::vector<T>& values) {
    testing::write_file(folder_ / name, make_npy_header(kDTypeOf<T>, shape) + testing::bytes_of(values));
    return (folder_ / name).string();
  }
  std::string out() const { return (folder_ / "out.npy").string(); }

  template <class T>
  std::vector<T> load(Shape& shape) const {
    std::ifstream in(out(), std::ios::binary);
    const NpyHeader header = read_npy_header(in);
    EXPECT_EQ(header.dtype, kDTypeOf<T>);
    shape = header.shape;
    std::vector<T> values(static_cast<std::size_t>(header.elements));
    in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    return values;
  }

  /// On the host device, without tuning.
  testing::CommandRun run(std::vector<std::string> args) const {
    for (const char* each : {"--device", "host", "--on-miss", "heuristic", "--cache"}) args.emplace_back(each);
    args.push_back((folder_ / "cache.sqlite").string());
    return run_hone(args, isolated_environment());
  }

  testing::TemporaryFolder folder_;
  Shape shape_;
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST_F(ArrayCommand, ReduceWritesTheSumsAlongAnAxis) {
  const std::string file = save("a.npy", {2, 3, 4}, ramp(24));
  const auto first = run({"reduce", file, "--axis", "0", "-o", out()});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(load<float>(shape_), ElementsAre(12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34));
  EXPECT_EQ(shape_, (Shape{3, 4}));
  EXPECT_EQ(run({"reduce", file, "--axis", "-1", "--op", "max", "-o", out()}).code, 0);
  EXPECT_THAT(load<float>(shape_), ElementsAre(3, 7, 11, 15, 19, 23));
  EXPECT_EQ(shape_, (Shape{2, 3}));
  EXPECT_EQ(run({"reduce", file, "--axis", "1", "--op", "minmax", "-o", out()}).code, 0);
  EXPECT_EQ(load<float>(shape_).size(), 16U);
  EXPECT_EQ(shape_, (Shape{2, 4, 2}));
}

TEST_F(ArrayCommand, ReduceAlongTheOnlyAxisIsTheWhole) {
  const std::string file = save("a.npy", {5}, ramp(5));
  EXPECT_EQ(run({"reduce", file, "--axis", "0", "-o", out()}).code, 0);
  EXPECT_THAT(load<float>(shape_), ElementsAre(10));
  EXPECT_EQ(shape_, Shape{});
}

TEST_F(ArrayCommand, TransposeSwapsTheLastTwoAxes) {
  const auto run_it = run({"transpose", save("a.npy", {2, 2, 3}, ramp(12)), "-o", out()});
  EXPECT_EQ(run_it.code, 0) << run_it.err;
  EXPECT_THAT(load<float>(shape_), ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
  EXPECT_EQ(shape_, (Shape{2, 3, 2}));
}

TEST_F(ArrayCommand, SoftmaxAddsUpToOneAlongItsAxis) {
  const std::string file = save("a.npy", {2, 3}, ramp(6));
  for (const char* axis : {"0", "1"}) {
    const auto run_it = run({"softmax", file, "--axis", axis, "-o", out()});
    ASSERT_EQ(run_it.code, 0) << run_it.err;
    const std::vector<float> values = load<float>(shape_);
    ASSERT_EQ(shape_, (Shape{2, 3}));
    if (axis[0] == '0') {
      EXPECT_NEAR(values[0] + values[3], 1, 1e-6);
      EXPECT_NEAR(values[3] / values[0], std::exp(3.0), 1e-4);
    } else {
      EXPECT_NEAR(values[0] + values[1] + values[2], 1, 1e-6);
      EXPECT_NEAR(values[1] / values[0], std::exp(1.0), 1e-5);
    }
  }
  EXPECT_EQ(run({"softmax", file, "--log", "--scale", "2", "-o", out()}).code, 0);
  const std::vector<float> logs = load<float>(shape_);
  EXPECT_NEAR(logs[1] - logs[0], 2, 1e-5);
}

TEST_F(ArrayCommand, RawFilesHaveTheShapeThatIsGiven) {
  testing::write_file(folder_ / "raw.bin", testing::bytes_of(ramp(6)));
  const std::string file = (folder_ / "raw.bin").string();
  EXPECT_EQ(run({"transpose", file, "--dtype", "f32", "--shape", "2x3", "-o", out()}).code, 0);
  EXPECT_THAT(load<float>(shape_), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(run({"transpose", file, "--dtype", "f32"}).err, Names("--shape"));
  EXPECT_THAT(run({"transpose", file, "--dtype", "f32", "--shape", "2x4"}).err,
              Names("6 elements", "f32", "--shape", "2x4", "8"));
  const std::string npy = save("a.npy", {6}, ramp(6));
  EXPECT_THAT(run({"transpose", npy, "--shape", "2x3"}).err, Names("leave", "--shape"));
}

TEST_F(ArrayCommand, RawFilesMayHaveAnyShapeOfAnArray) {
  testing::write_file(folder_ / "raw.bin", testing::bytes_of(ramp(24)));
  const std::string file = (folder_ / "raw.bin").string();
  EXPECT_EQ(run({"transpose", file, "--dtype", "f32", "--shape", "1x2x3x4", "-o", out()}).code, 0);
  load<float>(shape_);
  EXPECT_EQ(shape_, (Shape{1, 2, 4, 3}));
  EXPECT_EQ(run({"softmax", file, "--dtype", "f32", "--shape", "2 × 1x3x4", "--axis", "1", "-o", out()}).code, 0);
  EXPECT_EQ(run({"reduce", file, "--dtype", "f32", "--shape", "2x1x3x2x2", "--axis", "2", "-o", out()}).code, 0);
  load<float>(shape_);
  EXPECT_EQ(shape_, (Shape{2, 1, 2, 2}));

  testing::write_file(folder_ / "empty.bin", "");
  const std::string empty = (folder_ / "empty.bin").string();
  for (const auto& [text, transposed] : {std::pair("0x8", Shape{8, 0}), std::pair("8x0", Shape{0, 8})}) {
    EXPECT_EQ(run({"transpose", empty, "--dtype", "f32", "--shape", text, "-o", out()}).code, 0) << text;
    load<float>(shape_);
    EXPECT_EQ(shape_, transposed) << text;
  }
}

TEST_F(ArrayCommand, EmptyArraysHaveEmptyResults) {
  const auto run_it = run({"transpose", save<float>("a.npy", {0, 3}, {}), "-o", out()});
  EXPECT_EQ(run_it.code, 0) << run_it.err;
  EXPECT_THAT(run_it.out, Names("nothing"));
  EXPECT_THAT(load<float>(shape_), ElementsAre());
  EXPECT_EQ(shape_, (Shape{3, 0}));
  const auto softmax = run({"softmax", save<float>("b.npy", {0, 3}, {}), "--json"});
  EXPECT_EQ(softmax.err, "") << "no miss to tune for";
  EXPECT_EQ(Json::parse(softmax.out)["results"][0]["policy"], Json());
}

/// No tuning measures anything of them, so that none is asked for.
TEST_F(ArrayCommand, EmptyShapesAreNoMisses) {
  for (const std::string axis : {"0", "1"}) {
    const Shape shape = axis == "0" ? Shape{0, 5} : Shape{5, 0};
    const std::string empty = save<float>("empty.npy", shape, {});
    const auto run_it = run({"reduce", empty, "--axis", axis, "-o", out()});
    EXPECT_EQ(run_it.code, 0) << run_it.err;
    EXPECT_EQ(run_it.err, "");
    EXPECT_THAT(load<float>(shape_), ElementsAre(0, 0, 0, 0, 0));
  }
  run({"reduce", save("some.npy", {2, 5}, ramp(10)), "--axis", "0"});
  EXPECT_EQ(cache::Store(folder_ / "cache.sqlite").misses().size(), 1U) << "that of the array with elements";
}

TEST_F(ArrayCommand, OneElementIsNoElements) {
  EXPECT_THAT(run({"reduce", save("one.npy", {1}, ramp(1))}).out, Names("1 element of f32"));
}

TEST_F(ArrayCommand, TheArrayThatWasReadIsNotReplacedByTheResult) {
  const std::string file = save("a.npy", {2, 3}, ramp(6)), link = (folder_ / "link.npy").string();
  std::filesystem::create_symlink(file, link);
  for (const std::string& name : {file, link})
    for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
             {"reduce", file}, {"reduce", file, "--axis", "0"}, {"softmax", file}, {"transpose", file}}) {
      words.insert(words.end(), {"-o", name});
      const auto refused = run(words);
      EXPECT_EQ(refused.code, 2) << words.front();
      EXPECT_THAT(refused.err, Names(name, "read by this command", "another file"));
    }
  std::ifstream in(file, std::ios::binary);
  EXPECT_EQ(read_npy_header(in).shape, (Shape{2, 3}));
}

/// On the way, the command makes the cache that it would replace.
TEST_F(ArrayCommand, TheCacheIsNotReplacedByTheResult) {
  const std::string file = save("a.npy", {2, 3}, ramp(6)), cache = (folder_ / "cache.sqlite").string();
  for (int round = 0; round < 2; ++round) {
    const auto refused = run({"transpose", file, "-o", cache});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, Names("cache.sqlite", "SQLite", "another file"));
    std::ifstream in(cache, std::ios::binary);
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), ::testing::StartsWith("SQLite format 3"));
  }
}

TEST_F(ArrayCommand, WhatCannotBeIsRefused) {
  const std::string file = save("a.npy", {2, 3}, ramp(6));
  EXPECT_EQ(run({"reduce", file, "--axis", "2"}).code, 2);
  const std::string empty = save<float>("empty.npy", {5, 0}, {});
  const auto none = run({"reduce", empty, "--axis", "1", "--op", "argmax", "-o", out()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, Names("empty.npy", "(5, 0)", "axis 1", "argmax"));
  EXPECT_EQ(run({"reduce", file, "--axis", "0", "--op", "sum,max", "-o", out()}).code, 2);
  EXPECT_EQ(run({"softmax", save("i.npy", {2, 2}, std::vector<std::int32_t>{1, 2, 3, 4})}).code, 2);
  for (const char* scale : {"inf", "1e400", "1e38"}) {
    const testing::CommandRun refused = run({"softmax", file, "--scale", scale});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, Names("scale", "2^126"));
  }
  EXPECT_EQ(run({"transpose", file, "-o", (folder_ / "no" / "out.npy").string()}).code, 4);
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(ArrayCommand, JsonNamesShapeAndChoice) {
  const Json json = Json::parse(run({"transpose", save("a.npy", {2, 3}, ramp(6)), "--json"}).out);
  EXPECT_EQ(json["shape"], Json({2, 3}));
  EXPECT_EQ(json["results"][0]["shape"], Json({3, 2}));
  EXPECT_EQ(json["results"][0]["result_dtype"], "f32");
  EXPECT_EQ(json["results"][0]["source"], "heuristic");
}

}  // namespace
}  // namespace hone::tuner
