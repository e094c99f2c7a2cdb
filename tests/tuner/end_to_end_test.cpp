#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tests/tuner/end_to_end_fixture.h"
#include "tuner/explain/counters.h"

namespace hone::tuner {
namespace {

using testing::bytes_of;
using testing::CommandRun;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using test::HasLine;
using test::Names;
using testing::isolated_environment;
using ::testing::Not;
using testing::npy_file;
using testing::npy_header;
using testing::run_hone;

/// The words of the command in "…; tune it with: hone tune … --cache '/a/path'".
std::vector<std::string> suggested_words(const std::string& message) {
  constexpr std::string_view kBefore = "tune it with: hone ";
  const std::size_t begin = message.find(kBefore);
  if (begin == std::string::npos) return {};
  std::istringstream text(message.substr(begin + kBefore.size(), message.find('\n', begin) - begin - kBefore.size()));
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    std::erase(word, '\'');
    words.push_back(word);
  }
  return words;
}

// Each with something that an older suggestion left out: NaNs, dtypes, alignment, a shape, another family.
TEST_F(EndToEnd, WhatIsSuggestedTunesWhatWasAsked) {
  const std::string values = file("values.npy", npy_file("<f4", std::vector<float>(3000, 1)));
  const std::string integers = file("integers.npy", npy_file("<i4", std::vector<std::int32_t>(3000, 1)));
  const std::string matrix = file("matrix.raw", bytes_of(std::vector<float>(64 * 65, 1)));
  const std::vector<std::vector<std::string>> calls{
      {"reduce", values, "--nan", "ignore"},
      {"reduce", integers, "--accumulator", "f64"},
      {"reduce", matrix, "--dtype", "float32", "--shape", "64x65", "--axis", "1", "--op", "max"},
      {"softmax", matrix, "--dtype", "f32", "--shape", "64x65"},
      {"transpose", matrix, "--dtype", "f32", "--shape", "64x65"}};
  for (std::vector<std::string> call : calls) {
    for (const char* word : {"--device", "host", "--on-miss", "error"}) call.emplace_back(word);
    const CommandRun missed = hone(call);
    EXPECT_EQ(missed.code, 6) << missed.err;
    std::vector<std::string> words = suggested_words(missed.err);
    ASSERT_FALSE(words.empty()) << missed.err;
    words.insert(words.end(), {"--budget", "4s"});
    const CommandRun tuned = hone(words);
    EXPECT_EQ(tuned.code, 0) << tuned.err;
    const CommandRun found = hone(call);
    EXPECT_EQ(found.code, 0) << missed.err << found.err;
  }
}

TEST_F(EndToEnd, WhatIsNotDefinedIsLeftOutAndNamed) {
  const CommandRun run = hone({"tune", "--device", "host", "--op", "sum,logsumexp", "--dtype", "f32,i32", "--size",
                               "300", "--budget", "3s", "-q"});
  EXPECT_THAT(run.err, Names("not defined", "left", "logsumexp", "i32"));
}

TEST_F(EndToEnd, SuggestedPathsAreQuotedForAShell) {
  const std::string values = file("values.npy", npy_file("<f4", std::vector<float>(300, 1)));
  cache_ = folder_ / "it's here/cache.sqlite";
  EXPECT_THAT(hone({"reduce", values, "--device", "host", "--on-miss", "error"}).err,
              HasSubstr("it'\\''s here/cache.sqlite'"));
}

TEST_F(EndToEnd, IndicesOfAnArrayInFortranOrderAreRefused) {
  const std::string array =
      file("fortran.npy", npy_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }") +
                              bytes_of(std::vector<float>{1, 4, 2, 5, 9, 6}));
  const CommandRun run = hone({"reduce", array, "--device", "host", "--op", "max,argmax"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("numpy.ascontiguousarray"));
  EXPECT_EQ(reduce(array, {"--op", "max"})["results"][0]["result"], 9);
}

TEST_F(EndToEnd, EmptyArgumentsAreRefused) {
  const CommandRun run = hone({"reduce", "x.npy", "--cache", ""});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("argument", "empty"));
}

TEST_F(EndToEnd, CallsAreTimedWhenThatIsAskedFor) {
  const std::string values = file("values.npy", npy_file("<f4", std::vector<float>(3000, 1)));
  EXPECT_TRUE(reduce(values)["results"][0]["warm_us"].is_null());
  EXPECT_GT(reduce(values, {"--time"})["results"][0]["warm_us"], 0);
}

TEST_F(EndToEnd, TuneInspectReduce) {
  const std::vector<std::string> tune{"tune",   "--device", "host",     "--op", "sum,max",
                                      "--size", "1000",     "--budget", "3s"};
  const CommandRun first = hone(tune);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, Names("Tuning", "2 problems"));
  EXPECT_THAT(first.err, Names("[1/2]", "sum", "f32", "1000"));
  EXPECT_THAT(first.err, Names("[2/2]", "max", "f32", "1000"));
  EXPECT_THAT(first.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(first.out, Names("2 tuned", "compiling"));
  EXPECT_THAT(first.out, HasLine("time of the devices", "waiting for the compiler", "measuring"));
  EXPECT_THAT(first.out, Names("940..1116"));
  EXPECT_THAT(first.out, Names("Winners are in " + cache_.string()));

  const CommandRun second = hone(tune);
  EXPECT_EQ(second.code, 0);
  EXPECT_THAT(second.err, Names("Everything", "tuned"));
  EXPECT_THAT(second.out, Names("0 tuned", "2 kept", "cache", "0.0 s"));

  const CommandRun inspect = hone({"inspect"});
  EXPECT_EQ(inspect.code, 0);
  EXPECT_THAT(inspect.out, Names("reduce", "sum", "f32"));
  EXPECT_THAT(inspect.out, Names("reduce", "max", "f32"));
  EXPECT_THAT(hone({"inspect", "1"}).out, Names("winner"));

  std::vector<float> values(1001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const CommandRun reduce = hone({"reduce", file("data.npy", npy_file("<f4", values)), "--op", "sum,max", "--device",
                                  "host", "--on-miss", "error"});
  EXPECT_EQ(reduce.code, 0) << reduce.err;
  EXPECT_THAT(reduce.out, Names("1001 elements", "f32", "3.91 KiB", "npy", "(1001,)"));
  EXPECT_THAT(reduce.out, Names("500500"));
  EXPECT_THAT(reduce.out, Names("1000"));
  EXPECT_THAT(reduce.out, Names("cache"));
}

TEST_F(EndToEnd, StreamAndGraphAreTunedAndInspectedApart) {
  const CommandRun run = hone({"tune", "--device", "host", "--size", "1000", "--budget", "3s", "--context", "both"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names("2 tuned", "compiling"));
  EXPECT_THAT(run.out, Names("sum", "f32", "1000 graph"));
  EXPECT_THAT(run.out, Names("model's", "rank"));
  EXPECT_THAT(run.out, Names("median", "2"));
  EXPECT_THAT(hone({"tune", "--device", "host", "--size", "1000", "--context", "graph"}).out,
              Names("1 kept", "cache"));
  EXPECT_THAT(hone({"inspect"}).out, Names("reduce", "sum", "f32", "graph"));
  EXPECT_THAT(hone({"inspect", "--context", "stream"}).out, Not(HasSubstr("graph")));
  EXPECT_THAT(hone({"inspect", "2"}).out, HasLine("context", "graph"));
  EXPECT_THAT(hone({"inspect", "--json", "--context", "graph"}).out, Names("\"launch_context\"", "\"graph\""));
}

TEST_F(EndToEnd, ExplainsWhatWasTunedWithoutMeasuring) {
  ASSERT_EQ(hone({"tune", "--device", "host", "--size", "2^12,2^16", "--budget", "3s"}).code, 0);
  const CommandRun run = hone({"explain", "--size", "5000"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasLine("gain", "occupancy model's first choice"));
  EXPECT_THAT(run.out, HasLine("found", "candidates", "rank", "correlation"));
  EXPECT_THAT(run.out, Names("won"));
  EXPECT_THAT(run.out, Names("rejected"));
  EXPECT_THAT(hone({"explain", "--size", "2^14"}).out, AnyOf(Names("n = 65536"), Names("n = 4096")))
      << "between: served by whichever was faster there";

  const nlohmann::json json = nlohmann::json::parse(hone({"explain", "--size", "2^12", "--json"}).out);
  const nlohmann::json& winner = json["winners"].at(0);
  EXPECT_EQ(winner["candidates"][0]["fate"], "won");
  EXPECT_EQ(winner["candidates"][0]["policy"], winner["candidate"]["policy"]);
  EXPECT_GT(winner["measured"], 1);
  for (const auto& candidate : winner["candidates"]) {
    EXPECT_TRUE(candidate["fate"] != "rejected" || candidate["why"] != "") << candidate;
  }
  EXPECT_EQ(hone({"explain", "1"}).code, hone({"inspect", "1"}).code);

  // The process that --counters starts under Nsight Compute runs a stored winner, and nothing else.
  const std::string id = std::to_string(winner["id"].get<int>());
  EXPECT_EQ(run_counted(std::vector<std::string>{cache_.string(), id, "host"}), 0);
  EXPECT_NE(run_counted(std::vector<std::string>{cache_.string(), "999", "host"}), 0);
}

TEST_F(EndToEnd, ProgramsMissesAreTunedTheHeaviestFirst) {
  const std::string small = file("small.npy", npy_file<float>("<f4", std::vector<float>(1000, 1)));
  const std::string large = file("large.npy", npy_file<float>("<f4", std::vector<float>(100000, 1)));
  for (const std::string& path : {small, large}) reduce(path);
  for (int i = 0; i < 2; ++i) reduce(small, {"--op", "max"});
  const CommandRun run = hone({"tune", "--missed", "--device", "host", "--budget", "3s"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto max = run.err.find("max f32 1000: ");
  const auto large_sum = run.err.find("sum f32 100000: ");
  const auto small_sum = run.err.find("sum f32 1000: ");
  EXPECT_LT(max, large_sum) << run.err;
  EXPECT_LT(large_sum, small_sum) << run.err;
  EXPECT_NE(small_sum, std::string::npos);
  EXPECT_THAT(hone({"tune", "--missed", "--device", "host"}).err, Names("Nothing", "missed"));
}

TEST_F(EndToEnd, AFileOfProblemsIsACampaign) {
  const std::string campaign = file("c.json", R"({"budget": "3s", "problems": [
    {"op": "max", "size": 1024}, {"op": "sum", "size": 1024, "weight": 2}]})");
  const CommandRun run = hone({"tune", "--file", campaign, "--device", "host"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_LT(run.err.find("[1/2] sum"), run.err.find("[2/2] max"));
  EXPECT_THAT(run.out, Names("heuristic", "weighted geometric mean"));
}

TEST_F(EndToEnd, ABudgetThatMeasuresNothingSaysSo) {
  const CommandRun run = hone({"tune", "--device", "host", "--size", "1024", "--budget", "1ms"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, Names("budget", "small", "1 problem"));
  EXPECT_THAT(run.out, Names("1 left", "untuned"));
  EXPECT_THAT(hone({"inspect"}).out, Names("heuristic"));
  EXPECT_THAT(hone({"explain", "--size", "1024"}).out, Names("no time", "compare"));
}

TEST_F(EndToEnd, AnyProblemThatItsBudgetLeavesUntunedIsCode6) {
  ASSERT_EQ(hone({"tune", "--device", "host", "--size", "256", "--budget", "3s"}).code, 0);
  const CommandRun run = hone({"tune", "--device", "host", "--size", "256,4096", "--budget", "1ms"});
  EXPECT_EQ(run.code, 6) << run.err;
  EXPECT_THAT(run.out, Names("1 kept", "1 left untuned"));
}

TEST_F(EndToEnd, WhatTheTotalBudgetLeavesIsCountedAndNoFailure) {
  const CommandRun run = hone({"tune", "--device", "host", "--size", "1024,4096", "--total-budget", "1ms"});
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.err.substr(run.err.rfind("hone: ")), Names("total budget", "2 problems", "same command"));
}

TEST_F(EndToEnd, OptionsThatAreListsMayBeGivenSeveralTimes) {
  const CommandRun run = hone({"tune", "--device", "host", "--op", "sum", "--op", "max", "--size", "1024", "--size",
                               "4096", "--budget", "1ms"});
  EXPECT_THAT(run.out, Names("4 left", "untuned"));
}

TEST_F(EndToEnd, ProblemsLargerThanMemoryAreCode6) {
  const CommandRun run = hone({"tune", "--device", "host", "--size", "2^50"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, Names("sum", "f32", "2^50", "takes", "4096 TiB"));
  EXPECT_THAT(run.out, Not(HasSubstr("Winners are in")));
}

TEST_F(EndToEnd, FoldersOfANewCacheAreTheOwnersAlone) {
  const ::mode_t before = ::umask(0);
  const CommandRun run = hone({"tune", "--device", "host", "--size", "256", "--budget", "3s", "-q"});
  ::umask(before);
  EXPECT_EQ(run.code, 0) << run.err;
  for (const std::filesystem::path& made : {cache_.parent_path(), cache_.parent_path().parent_path()})
    EXPECT_EQ(std::filesystem::status(made).permissions(), std::filesystem::perms(0700)) << made;
}

/// An operation that is the same in both modes has one winner, which either mode finds.
TEST_F(EndToEnd, WinnersOfBothNumericsAreInspectedByEither) {
  ASSERT_EQ(hone({"tune", "--device", "host", "--op", "sum,max", "--size", "1024", "--budget", "4s"}).code, 0);
  const auto winners = [&](const char* op, const char* numerics) {
    const CommandRun run = hone({"inspect", "--json", "--op", op, "--numerics", numerics});
    return nlohmann::json::parse(run.out)["winners"].size();
  };
  EXPECT_EQ(winners("max", "fast"), 1U);
  EXPECT_EQ(winners("max", "reproducible"), 1U);
  EXPECT_EQ(winners("sum", "fast"), 1U);
  EXPECT_EQ(winners("sum", "reproducible"), 0U);
}

TEST_F(EndToEnd, QuietTuneSaysOnlyTheSummary) {
  const CommandRun run = hone({"tune", "--device", "host", "--size", "256", "--budget", "3s", "-q"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, Names("1 tuned"));
}

TEST_F(EndToEnd, ATerminalGetsAStatusLine) {
  Environment environment = isolated_environment(cache_);
  environment.err_columns = [] { return 60; };
  const CommandRun run = run_hone({"tune", "--device", "host", "--size", "256", "--budget", "3s"}, environment);
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr("\r\x1b[K[1/1] sum f32 2^8"));
  EXPECT_THAT(run.err, HasSubstr("\r\x1b[K[1/1] sum f32 2^8: "));
  EXPECT_EQ(run.err.back(), '\n');
}

TEST_F(EndToEnd, NoWinnerUnderThePolicyErrorIsCode6) {
  const CommandRun run =
      hone({"reduce", file("d.npy", npy_file<float>("<f4", {1, 2})), "--device", "host", "--on-miss", "error"});
  EXPECT_EQ(run.code, 6);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, ::testing::StartsWith("hone: "));
}

TEST_F(EndToEnd, ReproducibleWinnersAreWrittenAsCuda) {
  for (const char* numerics : {"fast", "reproducible"}) {
    EXPECT_EQ(hone({"emit", "--size", "1000", "--numerics", numerics}).code, 6) << numerics;
    const CommandRun misaligned = hone({"emit", "--size", "1000", "--numerics", numerics, "--align", "4"});
    EXPECT_EQ(misaligned.code, 2) << "tuning would not help";
    EXPECT_THAT(misaligned.err, Names("aligned to 16 bytes"));
    ASSERT_EQ(hone({"tune", "--device", "host", "--size", "1000", "--numerics", numerics, "--nan", "ignore", "--budget",
                    "3s"}).code,
              0);
    EXPECT_EQ(hone({"emit", "--size", "1000", "--numerics", numerics}).code, 6) << numerics;
    const CommandRun run = hone({"emit", "--size", "1000", "--numerics", numerics, "--nan", "ignore"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, Names("sum f32", "µs ±"));
  }
}

TEST_F(EndToEnd, ReducesEveryDTypeOfNpy) {
  EXPECT_EQ(reduce(file("a.npy", npy_file<float>("<f4", {1.5F, 2})))["results"][0]["result"], 3.5);
  EXPECT_EQ(reduce(file("b.npy", npy_file<double>("<f8", {0.1, 0.2})))["results"][0]["result"], 0.1 + 0.2);
  const auto sum = reduce(file("c.npy", npy_file<std::int32_t>("<i4", {2'000'000'000, 2'000'000'000})));
  EXPECT_EQ(sum["results"][0]["result"], 4'000'000'000);
  EXPECT_EQ(sum["results"][0]["result_dtype"], "i64");
  const std::int64_t big = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(reduce(file("d.npy", npy_file<std::int64_t>("<i8", {big, 7})), {"--op", "max"})["results"][0]["result"],
            big);
}

TEST_F(EndToEnd, ReducesAnyShapeAndOrder) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  const auto with_header = [&](const std::string& dictionary) { return npy_header(dictionary, 2) + bytes_of(values); };
  const std::string fortran = with_header("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }");
  EXPECT_EQ(reduce(file("f.npy", fortran))["results"][0]["result"], 21);
  const std::string scalar =
      npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }") + bytes_of(std::vector<double>{42});
  EXPECT_EQ(reduce(file("s.npy", scalar))["results"][0]["result"], 42);
}

TEST_F(EndToEnd, ReduceWritesItsResult) {
  const std::string data = file("d.npy", npy_file<std::int32_t>("<i4", {3, 1, 2}));
  const std::string out = (folder_ / "out.npy").string();
  const auto written = [&](const std::string& op) {
    const CommandRun run = hone({"reduce", data, "--device", "host", "--on-miss", "heuristic", "--op", op, "-o", out});
    EXPECT_EQ(run.code, 0) << run.err;
    std::ifstream in(out, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string one = npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(written("sum"), one + bytes_of(std::vector<std::int64_t>{6}));
  const std::string two = npy_header("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }");
  EXPECT_EQ(written("minmax"), two + bytes_of(std::vector<std::int32_t>{1, 3}));
  EXPECT_THAT(hone({"reduce", data, "--device", "host", "--op", "sum,max", "-o", out}).err,
              Names("--output", "result", "operation", "--op", "2"));
}

TEST_F(EndToEnd, NoElementsGiveTheIdentities) {
  const std::string empty = file("e.npy", npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }"));
  const auto results = reduce(empty, {"--op", "sum,min,max,minmax"})["results"];
  EXPECT_EQ(results[0]["result"], 0);
  EXPECT_EQ(results[1]["result"], "inf");
  EXPECT_EQ(results[2]["result"], "-inf");
  EXPECT_EQ(results[3]["result"], (nlohmann::json{"inf", "-inf"}));
  for (const auto& result : reduce(empty, {"--op", "every"})["results"]) EXPECT_NE(result["op"], "argmin");
  EXPECT_THAT(hone({"reduce", empty, "--device", "host", "--op", "dot"}).err, Names("dot", "two"));
  EXPECT_THAT(hone({"reduce", empty, "--device", "host", "--on-miss", "heuristic"}).out, Names("no elements"));
  for (const char* on_miss : {"heuristic", "error"}) {
    const CommandRun columns = hone({"reduce", empty, "--device", "host", "--axis", "0", "--on-miss", on_miss});
    EXPECT_EQ(columns.code, 0) << columns.err;
  }
}

TEST_F(EndToEnd, NaNPropagates) {
  const std::string path = file("n.npy", npy_file<float>("<f4", {1, std::nanf(""), 2}));
  EXPECT_EQ(reduce(path, {"--op", "min"})["results"][0]["result"], "nan");
}

TEST_F(EndToEnd, ReducesRawFilesInSeveralChunks) {
  // Larger than the staging buffer of 4 MiB, and no multiple of it.
  std::vector<std::int64_t> values(700'001, 1);
  values.back() = 1000;
  const std::string path = file("raw.bin", bytes_of(values));
  EXPECT_EQ(reduce(path, {"--dtype", "i64"})["results"][0]["result"], 701'000);
  EXPECT_EQ(reduce(path, {"--dtype", "i64", "--op", "max"})["results"][0]["result"], 1000);
}

TEST_F(EndToEnd, ResultsReadBackExactly) {
  const std::string path = file("x.npy", npy_file<float>("<f4", {0.1F}));
  const CommandRun run = hone({"reduce", path, "--device", "host", "--on-miss", "heuristic"});
  EXPECT_THAT(run.out, Names("0.100000001"));
}

}  // namespace
}  // namespace hone::tuner
