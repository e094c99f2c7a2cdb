#include "tuner/command.h"

#include <gmock/gmock.h>
#include <hone/error.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using test::Names;
using testing::isolated_environment;
using testing::npy_file;
using testing::npy_header;
using testing::run_hone;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

void expect_refusal(const CommandRun& run, int code, const std::string& part) {
  EXPECT_EQ(run.code, code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("hone: "));
  EXPECT_THAT(run.err, Names(part));
}

struct WrongArguments {
  std::vector<std::string> args;
  std::string message;

  friend void PrintTo(const WrongArguments& wrong, std::ostream* out) { *out << ::testing::PrintToString(wrong.args); }
};

class WrongUsage : public ::testing::TestWithParam<WrongArguments> {};

TEST_P(WrongUsage, IsCode2WithAMessageAndAHint) {
  const CommandRun run = run_hone(GetParam().args);
  expect_refusal(run, 2, GetParam().message);
  EXPECT_THAT(run.err, Names("Try"));
}

INSTANTIATE_TEST_SUITE_P(
    Commands, WrongUsage,
    ::testing::Values(WrongArguments{{}, "no command was given"},
                      WrongArguments{{"tun"}, "unknown command 'tun' (did you mean 'tune'?)"},
                      WrongArguments{{"frobnicate"}, "unknown command 'frobnicate'; commands are"},
                      WrongArguments{{"--vresion"}, "unknown option '--vresion' (did you mean '--version'?)"},
                      WrongArguments{{"tune", "inspect"}, "unknown kernel family 'inspect'"},
                      WrongArguments{{"devices", "extra"}, "unexpected argument 'extra'"},
                      WrongArguments{{"devices", "--jsno"}, "unknown option '--jsno' (did you mean '--json'?)"},
                      WrongArguments{{"devices", "--json=3"}, "--json takes no value"}));

INSTANTIATE_TEST_SUITE_P(
    Tune, WrongUsage,
    ::testing::Values(WrongArguments{{"tune", "--op"}, "--op needs a value"},
                      WrongArguments{{"tune", "--op", "sun"}, "unknown operation 'sun' (did you mean 'sum'?)"},
                      WrongArguments{{"tune", "--op", ""}, "an argument is empty"},
                      WrongArguments{{"tune", "--dtype", "f23"}, "unknown dtype 'f23' (did you mean 'f32'?)"},
                      WrongArguments{{"tune", "--dtype", "float"}, "known are f16, bf16, f32, f64, i8"},
                      WrongArguments{{"tune", "--size", "-5"}, "'-5' is not a size: it is negative"},
                      WrongArguments{{"tune", "--size=-5"}, "'-5' is not a size: it is negative"},
                      WrongArguments{{"tune", "--size", "0"}, "'0' is not a size"},
                      WrongArguments{{"tune", "--size", "2^99"}, "beyond 2^53"},
                      WrongArguments{{"tune", "--size", "big"}, "'big' is not a size"},
                      WrongArguments{{"tune", "--size", "2^20..2^10"}, "swap its ends"},
                      WrongArguments{{"tune", "--align", "3"}, "unknown alignment '3'"},
                      WrongArguments{{"tune", "--dtype", "f64", "--align", "4"}, "no problem is left"},
                      WrongArguments{{"tune", "--budget", "2"}, "'2' is not a duration"},
                      WrongArguments{{"tune", "--budget", "-2s"}, "outside 1ms … 24h"},
                      WrongArguments{{"tune", "--total-budget", "soon"}, "'soon' is not a duration"},
                      WrongArguments{{"tune", "redcue"}, "unknown kernel family 'redcue' (did you mean 'reduce'?)"},
                      WrongArguments{{"tune", "reduce", "extra"}, "unexpected argument 'extra'"},
                      WrongArguments{{"tune", "--sizes", "8"}, "unknown option '--sizes' (did you mean '--size'?)"},
                      WrongArguments{{"tune", "--preset", "qick"}, "unknown preset 'qick' (did you mean 'quick'?)"},
                      WrongArguments{{"tune", "--preset", "quick", "--op", "sum"}, "and so does --op"},
                      WrongArguments{{"tune", "--missed", "--preset", "quick"}, "give one of them alone"},
                      WrongArguments{{"tune", "--shard", "3"}, "'3' is no shard"},
                      WrongArguments{{"tune", "--shard", "1/99999999999"}, "at most 1000000 shards"},
                      WrongArguments{{"tune", "--shard", "0/8"}, "no shard 0 of 8"},
                      WrongArguments{{"tune", "--shard", "9/8"}, "no shard 9 of 8"},
                      WrongArguments{{"tune", "--shard", "1/8", "--missed"}, "--missed has no shards"},
                      WrongArguments{{"tune", "--regret", "lots"}, "'lots' is no regret"},
                      WrongArguments{{"tune", "--regret=-1"}, "'-1' is no regret"},
                      WrongArguments{{"tune", "--op", "logsumexp", "--dtype", "i32"}, "no problem is left: "},
                      WrongArguments{{"tune", "--cache", "off"}, "the cache is off"},
                      WrongArguments{{"tune"}, "the cache is off"}));

INSTANTIATE_TEST_SUITE_P(
    Plan, WrongUsage,
    ::testing::Values(WrongArguments{{"plan", "--op", "sum"}, "for which GPU?"},
                      WrongArguments{{"plan", "--gpu", "h1000"}, "did you mean 'h100'?"},
                      WrongArguments{{"plan", "--gpu", "h100", "--policies", "0"}, "at least one"},
                      WrongArguments{{"plan", "--gpu", "h100", "--policies", "many"}, "no number"},
                      WrongArguments{{"plan", "--gpu", "h100", "--preset", "quick", "--size", "8"},
                                     "and so does --size"},
                      WrongArguments{{"plan", "--gpu", "h100", "--op", "sun"}, "did you mean 'sum'?"}));

INSTANTIATE_TEST_SUITE_P(
    Occupancy, WrongUsage,
    ::testing::Values(WrongArguments{{"occupancy", "--gpu", "h100"}, "of which kernel?"},
                      WrongArguments{{"occupancy", "--gpu", "h1000", "--block", "256"}, "did you mean 'h100'?"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--block", "2048"}, "a block has 1 to 1024"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--block", "0"}, "a block has 1 to 1024"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--registers", "256"}, "1 … 255"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--block", "x"}, "no number"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--block", "32", "--grid", "1", "--size", "8"},
                                     "each say how many blocks"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--block", "32", "--sm-threads", "100"},
                                     "no multiple of a warp"},
                      WrongArguments{{"occupancy", "--gpu", "h100", "--block", "32", "--entry", "k"},
                                     "--entry names a kernel of a .cu file"}));

INSTANTIATE_TEST_SUITE_P(Explain, WrongUsage,
                         ::testing::Values(WrongArguments{{"explain"}, "name the problem"},
                                           WrongArguments{{"explain", "3", "--size", "8"}, "name the problem"},
                                           WrongArguments{{"explain", "3", "--op", "max"},
                                                          "ID and --op exclude each other"},
                                           WrongArguments{{"explain", "3", "--device", "host"},
                                                          "ID and --device exclude each other"},
                                           WrongArguments{{"explain", "first"}, "'first' is no winner's id"},
                                           WrongArguments{{"explain", "1Ki"}, "'1Ki' is no winner's id"},
                                           WrongArguments{{"explain", "softmax", "--size", "8"},
                                                          "a family is named by --family"},
                                           WrongArguments{
                                               {"explain", "softmax", "--size", "8", "--numerics", "reproducible"},
                                               "a family is named by --family"},
                                           WrongArguments{{"explain", "--size", "1024,2048"}, "name 2 problems"},
                                           WrongArguments{
                                               {"explain", "--size", "1024", "--op", "all,any", "--dtype", "all"},
                                               "problems; one"},
                                           WrongArguments{{"explain", "--size", "1024"}, "the cache is off"}));

INSTANTIATE_TEST_SUITE_P(Inspect, WrongUsage,
                         ::testing::Values(WrongArguments{{"inspect", "first"}, "'first' is no winner's id"},
                                           WrongArguments{{"inspect", "--loans", "--all"},
                                                          "--all and --loans exclude each other"},
                                           WrongArguments{{"inspect", "0"}, "'0' is no winner's id"},
                                           WrongArguments{{"inspect", "-3"}, "'-3' is no winner's id"},
                                           WrongArguments{{"inspect", "--size", "x"}, "'x' is not a shape"},
                                           WrongArguments{{"inspect", "--op", "median"}, "unknown operation 'median'"},
                                           WrongArguments{{"inspect", "--dtype", "c64"}, "unknown dtype 'c64'"},
                                           WrongArguments{{"inspect"}, "the cache is off"}));

INSTANTIATE_TEST_SUITE_P(
    Reduce, WrongUsage,
    ::testing::Values(WrongArguments{{"reduce"}, "no file was given"},
                      WrongArguments{{"reduce", "x.npy", "--op", "median"}, "unknown operation 'median'"},
                      WrongArguments{{"reduce", "x.npy", "--dtype", "int"}, "unknown dtype 'int'"},
                      WrongArguments{{"reduce", "x.npy", "--on-miss", "tuen"},
                                     "unknown miss policy 'tuen' (did you mean 'tune'?)"},
                      WrongArguments{{"reduce", "x.npy", "y.npy"}, "unexpected argument 'y.npy'"}));

class CommandTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    write_file(folder_ / name, content);
    return (folder_ / name).string();
  }

  CommandRun with_cache(std::vector<std::string> args, const std::filesystem::path& cache) {
    args.insert(args.end(), {"--cache", cache.string()});
    return run_hone(args);
  }

  TemporaryFolder folder_;
};

TEST_F(CommandTest, MissingDevicesAreCode3) {
  const std::string data = file("data.npy", npy_file<float>("<f4", {1, 2, 3}));
  const auto cache = folder_ / "cache.sqlite";
  expect_refusal(with_cache({"tune", "--device", "cuda:99"}, cache), 3, "cuda:99");
  expect_refusal(run_hone({"reduce", data, "--device", "cuda:99"}), 3, "cuda:99");
}

TEST_F(CommandTest, BadCampaignFilesAreCode4WithTheirPlace) {
  const std::string bad = file("bad.json", "{\n \"problems\": [{\"opp\": \"sum\"}]}");
  expect_refusal(run_hone({"tune", "--file", bad}), 4, "bad.json:2:16: a problem has no field 'opp'");
  expect_refusal(run_hone({"tune", "--file", (folder_ / "none.json").string()}), 4, "it cannot be read");
}

TEST_F(CommandTest, WhatNothingIsKnownOfIsCode6) {
  expect_refusal(with_cache({"explain", "--size", "1024"}, folder_ / "cache.sqlite"), 6,
                 "nothing is known of sum f32 2^10");
}

TEST_F(CommandTest, WithoutMissesThereIsNothingToTune) {
  const CommandRun run = with_cache({"tune", "--missed", "--device", "host"}, folder_ / "cache.sqlite");
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("Nothing", "missed"));
}

TEST_F(CommandTest, UnknownDeviceNamesAreCode2) {
  const auto cache = folder_ / "cache.sqlite";
  expect_refusal(with_cache({"tune", "--device", "gpu"}, cache), 2, "'gpu' is no device name");
  expect_refusal(with_cache({"tune", "--device", "cuda"}, cache), 2, "'cuda' is no device name");
}

TEST_F(CommandTest, BadInputFilesAreCode4) {
  expect_refusal(run_hone({"reduce", (folder_ / "none.npy").string()}), 4, "there is no such file");
  expect_refusal(run_hone({"reduce", folder_.path().string()}), 4, "it is a directory");
  expect_refusal(run_hone({"reduce", file("text.npy", "hello")}), 4, "truncated");
  expect_refusal(run_hone({"reduce", file("zip.npy", "PK\x03\x04 and so on")}), 4, "archive (.npz)");
  const std::string big_endian = npy_header("{'descr': '>f4', 'fortran_order': False, 'shape': (0,), }");
  expect_refusal(run_hone({"reduce", file("big.npy", big_endian)}), 4, "big-endian");
  expect_refusal(run_hone({"reduce", file("odd.bin", "12345"), "--dtype", "f32"}), 4, "no multiple of the 4 bytes");
}

TEST_F(CommandTest, RawFilesWithoutADTypeAreCode2) {
  expect_refusal(run_hone({"reduce", file("raw.bin", "12345678")}), 2, "give --dtype");
}

TEST_F(CommandTest, UnusableCacheFilesAreCode5) {
  const auto text = file("text.sqlite", "this is a text file, and long enough to be taken for a header of a database");
  for (const char* command : {"tune", "inspect"}) {
    expect_refusal(with_cache({command}, folder_.path()), 5, folder_.path().string());
    expect_refusal(with_cache({command}, text), 5, text);
  }
}

TEST_F(CommandTest, CacheInAFolderThatCannotBeWrittenIsCode5BeforeTuning) {
  expect_refusal(with_cache({"tune", "--device", "host"}, "/proc/hone/cache.sqlite"), 5, "/proc");
}

TEST_F(CommandTest, InterruptsAreWatchedBeforeDevicesAreLookedFor) {
  Environment environment;
  bool is_watched = false;
  environment.watch_interrupts = [&] {
    is_watched = true;
    return std::stop_token{};
  };
  EXPECT_NE(run_hone({"tune", "--device", "cuda:99"}, environment).code, 0);
  EXPECT_TRUE(is_watched) << "looking for devices starts threads of CUDA, which would die of a SIGINT";
}

TEST_F(CommandTest, WrongEnvironmentVariablesAreCode2) {
  Environment environment;
  environment.session_options = []() -> SessionOptions {
    throw Error(ErrorCode::invalid_argument, "HONE_ON_MISS is 'never'; it can be tune, heuristic or error");
  };
  const CommandRun run = run_hone({"inspect"}, environment);
  expect_refusal(run, 2, "HONE_ON_MISS");
  EXPECT_EQ(run_hone({"inspect", "--help"}, environment).code, 0);
}

TEST(Devices, ListsTheHostWithItsFacts) {
  const CommandRun run = run_hone({"devices"});
  EXPECT_EQ(run.code, 0);
  for (const char* row : {"device", "host", "SMs", "threads per SM", "threads per block", "registers per SM",
                          "shared memory per block", "with opt-in", "L2 cache", "memory clock", "memory bus",
                          "SM clock", "blocks per launch", "implied bandwidth", "compute capability",
                          "driver", "compiler"}) {
    EXPECT_THAT(run.out, Names(row));
  }
}

TEST(Devices, SaysWhyThereIsNoCudaDevice) {
  const std::string reason = cuda_unavailable_reason();
  if (reason.empty()) GTEST_SKIP() << "there is one";
  EXPECT_THAT(run_hone({"devices"}).out, Names("No CUDA device: " + reason));
}

TEST(Devices, JsonHoldsEveryFact) {
  const CommandRun run = run_hone({"devices", "--json"});
  EXPECT_EQ(run.code, 0);
  const auto json = nlohmann::json::parse(run.out);
  const auto& host = json.at("devices").back();
  EXPECT_EQ(host.at("device"), "host");
  EXPECT_EQ(host.at("kind"), "host");
  EXPECT_GE(host.at("sm_count").get<int>(), 1);
  EXPECT_TRUE(host.contains("peak_bandwidth_gbps"));
  EXPECT_TRUE(host.contains("sm_clock_khz"));
  EXPECT_EQ(host.at("max_grid_blocks").size(), 3U);
  EXPECT_TRUE(host.contains("compiler"));
  EXPECT_EQ(json.at("cuda_unavailable_reason"), cuda_unavailable_reason());
}

}  // namespace
}  // namespace hone::tuner
