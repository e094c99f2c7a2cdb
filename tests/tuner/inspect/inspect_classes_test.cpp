// hone inspect of problem classes that share a winner: rows that are joined, and where figures were measured.
#include <gmock/gmock.h>

#include <algorithm>

#include <nlohmann/json.hpp>

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

TEST_F(InspectTest, AWinnerOfTheNearestShapeSaysWhereItWasTuned) {
  cache::Publication borrowed = tuned_sum();
  borrowed.key.problem.sizes[0] = {1482911, 2965821};
  borrowed.winner.tuned = false;
  borrowed.winner.median_us = 0;
  borrowed.winner.spread_us = 0;
  borrowed.tuning.reset();
  store_.publish(borrowed);
  EXPECT_THAT(inspect().out, HasLine("nearest", "3 h"));
  EXPECT_THAT(inspect({"1"}).out,
              HasLine("measured", "never", "1048576", "nearest",
                      "hone tune reduce --op sum --dtype f32 --size 2224366 --cache " + path_.string()));
  const CommandRun run = testing::run_hone({"explain", "1"}, isolated_environment(path_));
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, Names("served", "512t"));
  EXPECT_THAT(run.out, Names("tuned", "1048576", "nearest", "shape", "--cache " + path_.string()));
}

TEST_F(InspectTest, AClassServedByAnotherSizesMeasurementSaysSoAndHasNoFigures) {
  store_.publish(tuned_sum());
  cache::Publication other = lent(1482911, 2965821);
  other.winner.candidate = stored_candidate(256, 8, 800);  // a runner-up of the tuned size
  store_.publish(other);
  EXPECT_THAT(inspect().out, HasLine("1482911..2965821", "256t", "16B", "x4", "warp", "last_block", "800", "32",
                                     "100 %", "1048576", "lent", "3 h"));
  EXPECT_THAT(inspect({"2"}).out, HasLine("measured", "n = 1048576", "winner 1"));
  const nlohmann::json entry = json({"2"}).at(0);
  EXPECT_EQ(entry.at("how"), "lent");
  EXPECT_EQ(entry.at("tuned_extents"), nlohmann::json({1 << 20, 1, 1}));
  EXPECT_EQ(entry.at("measured_by"), 1);
  for (const char* figure : {"bytes_moved", "median_us", "spread_us", "gbps"}) EXPECT_TRUE(entry.at(figure).is_null());
}

TEST_F(InspectTest, AMeasurementThatIsNotStoredAnyMoreIsNotNamed) {
  store_.publish(lent(1482911, 2965821));
  EXPECT_THAT(inspect({"1"}).out, Names("n = 1048576", "not stored"));
  EXPECT_TRUE(json({"1"}).at(0).at("measured_by").is_null());
}

TEST_F(InspectTest, FiguresInJsonSayWhereTheyWereMeasured) {
  fill();
  const nlohmann::json measured = json({"1"}).at(0), heuristic = json({"2"}).at(0);
  EXPECT_EQ(measured.at("how"), "tuned");
  EXPECT_EQ(measured.at("measured_by"), 1);
  EXPECT_EQ(measured.at("median_us"), 2.8);
  EXPECT_NEAR(measured.at("gbps").get<double>(), 1498, 1);
  EXPECT_EQ(heuristic.at("how"), "heuristic");
  for (const char* unknown : {"tuned_extents", "measured_by", "median_us", "gbps"})
    EXPECT_TRUE(heuristic.at(unknown).is_null()) << unknown;
  EXPECT_TRUE(heuristic.at("candidate").at("registers").is_null());
  EXPECT_TRUE(heuristic.at("device").at("peak_bandwidth_gbps").is_null());
}

TEST_F(InspectTest, NeighbouringClassesWithOneWinnerAreOneRow) {
  store_.publish(tuned_sum());  // 741456..1482910
  store_.publish(lent(1482911, 2000000));
  store_.publish(lent(600000, 741455));
  store_.publish(lent(2000002, 3000000));  // nothing serves 2000001
  const CommandRun run = inspect();
  EXPECT_THAT(run.out, HasLine("1", "reduce", "sum", "f32", "16", "600000..2000000", "512t"));
  EXPECT_THAT(run.out, HasLine("1048576", "2.80", "1498", "50 %", "tuned", "lent", "3 h"));
  EXPECT_THAT(run.out, HasLine("4", "reduce", "sum", "f32", "16", "2000002..3000000", "512t"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 4) << "a heading, a header and two rows";
  EXPECT_EQ(json({}).size(), 4U) << "one for each class";
}

TEST_F(InspectTest, OfSeveralMeasuredSizesTheLargestStandsForTheRow) {
  cache::Publication larger = tuned_sum();
  larger.key.problem.sizes[0] = {1482911, 2965821};
  larger.winner.tuned_extents[0] = 1 << 21;
  larger.winner.bytes_moved = 8 << 20;
  larger.winner.median_us = 5.25;
  store_.publish(larger);
  store_.publish(tuned_sum());
  EXPECT_THAT(inspect().out, Names("741456..2965821"));
  EXPECT_THAT(inspect().out, HasLine("2097152", "5.25", "1598", "53 %", "tuned", "3 h"));
}

TEST_F(InspectTest, ClassesWithOneWinnerAreJoinedOnlyWhereNothingElseDiffers) {
  store_.publish(tuned_sum());
  const auto next = [] { return lent(1482911, 2965821); };
  std::vector<cache::Publication> others(6, next());
  others[0].winner.candidate.max_blocks = 1;
  others[1].key.problem.alignment = 8;
  others[2].key.problem.launch_context = "graph";
  others[3].key.problem.numerics = "fast, NaN ignored";
  others[4].key.toolchain.family_digest = "fedcba9876543210fedcba9876543210";
  others[5].winner.tuned = false;
  others[5].key.problem.dtype = "f64";
  for (const cache::Publication& other : others) store_.publish(other);
  EXPECT_THAT(inspect().out, Not(HasSubstr("741456..2965821")));
}

TEST_F(InspectTest, ShapesAreJoinedAlongEachExtent) {
  cache::Publication tile = tuned_sum();
  tile.key.problem.family = "reduce_rows";
  tile.tuning.reset();
  for (const std::int64_t rows : {64, 128}) {
    for (const std::int64_t columns : {64, 128}) {
      tile.key.problem.sizes = {{{rows, 2 * rows - 1}, {columns, 2 * columns - 1}, {1, 1}}};
      tile.winner.tuned_extents = {rows, columns, 1};
      store_.publish(tile);
    }
  }
  EXPECT_THAT(inspect().out, HasLine("4", "reduce_rows", "sum", "f32", "16", "64..255 × 64..255", "512t"));
  EXPECT_THAT(inspect().out, HasLine("128 × 128", "2.80"));
}

TEST_F(InspectTest, ShapesAreRangesOfEachExtent) {
  cache::Publication grid = tuned_sum();
  grid.key.problem.family = "a_family_of_a_program";
  grid.key.problem.sizes = {{{725, 1448}, {46, 90}, {1, 1}}};
  grid.winner.tuned_extents = {1024, 64, 1};
  store_.publish(grid);
  EXPECT_THAT(inspect().out, Names("725..1448", "46..90"));
  EXPECT_THAT(inspect({"1"}).out, Names("n = 1024 × 64"));
  EXPECT_THAT(inspect({"--size", "1000x64"}).out, Names("725..1448"));
  EXPECT_THAT(inspect({"--size", "64x1000"}).err, Names("none", "1 winners"));
  EXPECT_THAT(inspect({"--size", "1000"}).err, Names("none", "1 winners")) << "1000 is not 1000x64";
}

}  // namespace
}  // namespace hone::tuner
