// hone inspect: the list of winners, what it is filtered by, and what it says where there are none.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cache/support.h"
#include "tests/support/names.h"
#include "tests/tuner/inspect/inspect_fixture.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using test::HasLine;
using test::Names;
using testing::isolated_environment;
using ::testing::Not;

TEST_F(InspectTest, MissingCacheSaysWhatToRun) {
  const CommandRun run = testing::run_hone({"inspect"}, isolated_environment(path_));
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "hone: there is no cache file " + path_.string() + " yet; fill it with: hone tune --cache " +
                         path_.string() + "\n");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(InspectTest, MissingCacheIsAnEmptyListInJson) {
  const CommandRun run = testing::run_hone({"inspect", "--json"}, isolated_environment(path_));
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(nlohmann::json::parse(run.out).at("winners").empty());
}

TEST_F(InspectTest, DamagedWinnersAreSaidToBeDamaged) {
  fill();
  cache::sql(path_, "UPDATE winner SET registers = registers + 1 WHERE id = 1");
  const CommandRun one = testing::run_hone({"inspect"}, isolated_environment(path_));
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.err, Names("1 winner", "damaged", path_.string(), "hone cache verify", "hone cache repair"));
  EXPECT_THAT(one.out, HasSubstr("reduce max"));
  cache::sql(path_, "UPDATE winner SET registers = registers + 1 WHERE id = 2");
  const CommandRun all = testing::run_hone({"inspect"}, isolated_environment(path_));
  EXPECT_EQ(all.code, 5);
  EXPECT_THAT(all.err, Names("2 winners", "damaged"));
  EXPECT_THAT(all.err, Not(HasSubstr("no winner yet"))) << "it is not empty";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", "1"}, {"cache", "list"}, {"cache", "list", "--json"}}) {
    const CommandRun run = testing::run_hone(words, isolated_environment(path_));
    EXPECT_NE(run.code, 0) << words.front();
    EXPECT_THAT(run.err, Names("2 winners", "damaged"));
  }
  EXPECT_EQ(testing::run_hone({"cache", "list"}, isolated_environment(path_)).code, 5);
}

TEST_F(InspectTest, ShowsWinnersByDevice) {
  fill();
  const CommandRun run = inspect();
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(
      run.out,
      "Invented GPU (cuda, sm_90): 100 SMs, 3000 GB/s; driver 13.0; nvrtc 13.0.88\n"
      "id  problem         align                n  winner                       blocks  regs  occupancy     at n   "
      " µs  GB/s  "
      "of peak  how    age\n"
      " 1  reduce sum f32     16  741456..1482910  512t 16B x4 warp last_block     400    32      100 %  1048576  "
      "2.80  1498  "
      "   50 %  tuned  3 h\n"
      "\n"
      "Invented CPU (host, x86_64): 2 SMs; driver glibc 2.36; g++ 12.2.0\n"
      "id  problem         align       n  winner                       blocks  occupancy  at n  µs  GB/s  "
      "how        age\n"
      " 2  reduce max f32     16  1..181  128t 16B x4 warp last_block       1       12 %     –   –     –  "
      "heuristic  3 h\n")
      << "no register and no bandwidth is known on the second device";
}

TEST_F(InspectTest, NarrowTerminalsKeepTheEssentials) {
  fill();
  std::istringstream lines(inspect({}, 80).out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("µs") != std::string::npos || line.find("too narrow for") != std::string::npos) {
      EXPECT_LE(line.size(), 82U) << line;
    }
  }
  EXPECT_THAT(inspect({}, 80).out, Names("narrow"));
}

TEST_F(InspectTest, FiltersByEveryPartOfTheKey) {
  fill();
  for (const char* device : {"cuda", "sm_90", "gpu"}) {
    EXPECT_THAT(inspect({"--device", device}).out, Not(HasSubstr("Invented CPU"))) << device;
    EXPECT_THAT(inspect({"--device", device}).out, Names("Invented", "GPU")) << device;
  }
  EXPECT_THAT(inspect({"--op", "max"}).out, Not(HasSubstr("reduce sum")));
  EXPECT_THAT(inspect({"--size", "100"}).out, Not(HasSubstr("reduce sum")));
  const CommandRun nothing = inspect({"--dtype", "f64"});
  EXPECT_EQ(nothing.code, 0);
  EXPECT_THAT(nothing.err, Names("none", "2 winners"));
}

TEST_F(InspectTest, AnUnknownIdIsCode2) {
  fill();
  EXPECT_EQ(inspect({"77"}).code, 2);
  EXPECT_THAT(inspect({"77"}).err, Names("none", "2 winners"));
}

TEST_F(InspectTest, NanPoliciesAreShownWhereTheyAreNotTheDefault) {
  cache::Publication ignoring = tuned_sum();
  ignoring.key.problem.numerics = "fast, NaN ignored";
  store_.publish(tuned_sum());
  store_.publish(ignoring);
  EXPECT_THAT(inspect().out, HasLine("1", "reduce", "sum", "f32", "16"));
  EXPECT_THAT(inspect().out, HasLine("2", "reduce", "sum", "f32", "NaN", "ignored", "16"));
  EXPECT_THAT(inspect({"2"}).out, Names("Winner 2", "sum f32 NaN ignored"));
}

TEST_F(InspectTest, NumericsAreShownAndNamed) {
  store_.publish(tuned_sum());
  cache::Publication exact = tuned_sum();
  exact.key.problem.numerics = "reproducible";
  store_.publish(exact);
  exact.key.problem.numerics = "reproducible, NaN ignored";
  store_.publish(exact);
  EXPECT_THAT(inspect().out, HasLine("2", "reduce", "sum", "f32", "reproducible", "16"));
  EXPECT_THAT(inspect({"--numerics", "reproducible"}).out, Names("NaN ignored"));
  EXPECT_THAT(inspect({"--numerics", "reproducible"}).out, Not(HasLine("1", "reduce", "sum", "f32", "16")));
  EXPECT_THAT(inspect({"--numerics", "fast"}).out, HasLine("1", "reduce", "sum", "f32", "16"));
  EXPECT_THAT(inspect({"--numerics", "fast"}).out, Not(HasSubstr("reproducible")));
  const CommandRun wrong = inspect({"--numerics", "exact"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, Names("'exact'", "fast", "reproducible"));
}

TEST_F(InspectTest, FamiliesAndOperationsOfAProgramCanBeNamed) {
  cache::Publication publication = tuned_sum();
  publication.key.problem.family = "a_family_of_a_program";
  publication.key.problem.operation = "scan(sum,max)";
  store_.publish(publication);
  EXPECT_THAT(inspect({"--family", "a_family_of_a_program"}).out, Names("scan(sum,max)"));
  EXPECT_THAT(inspect({"--op", "scan(sum,max)"}).out, Names("a_family_of_a_program"));
  EXPECT_EQ(inspect({"--family", "reduce"}).out, "");
  const CommandRun wrong = inspect({"--family", "a_family"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, Names("copy", "a_family_of_a_program"));
}

TEST_F(InspectTest, NamesFromTheFileCannotWriteToTheTerminal) {
  cache::Publication publication = tuned_sum();
  publication.key.device.name = "evil\x1b[2J";
  store_.publish(publication);
  EXPECT_THAT(inspect().out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(inspect({"1"}).out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace hone::tuner
