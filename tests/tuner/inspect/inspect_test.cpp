#include <gmock/gmock.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cache/store.h"
#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using test::HasLine;
using test::Names;
using testing::isolated_environment;
using ::testing::Not;
using testing::TemporaryFolder;

cache::CandidateRecord candidate(int block_threads, int resident_blocks, std::int64_t max_blocks) {
  cache::CandidateRecord record;
  record.policy =
      "block_threads=" + std::to_string(block_threads) + " vector_bytes=16 unroll=4 tail=warp finish=last_block";
  record.max_blocks = max_blocks;
  record.block_threads = block_threads;
  record.registers = 32;
  record.static_smem_bytes = 128;
  record.max_threads_per_block = 1024;
  record.resident_blocks = resident_blocks;
  return record;
}

/// An invented GPU: 100 SMs, 3000 GB/s.
cache::KeyRecord gpu_key(std::int64_t first, std::int64_t last) {
  cache::KeyRecord key;
  key.device = {"cuda", "Invented GPU", "sm_90", "name=Invented GPU;sm_count=100;", 100, 2048, 3000};
  key.toolchain = {"nvrtc 13.0.88", "13.0", "0123456789abcdef0123456789abcdef"};
  key.problem = {"reduce", "sum", "f32", "fast", "stream", 16, {}};
  key.problem.sizes[0] = {first, last};
  return key;
}

cache::TrialRecord trial(int block_threads, double median_us) {
  cache::TrialRecord record;
  record.candidate = candidate(block_threads, 2048 / block_threads, 2048 / block_threads * 100);
  record.bytes_in_flight_per_sm = 131072;
  record.predicted_us = 9;
  record.median_us = median_us;
  record.spread_us = 0.1;
  record.samples = 20;
  record.verdict = "ok";
  return record;
}

cache::TrialRecord rejected(const std::string& verdict, const std::string& reason) {
  cache::TrialRecord record;
  record.candidate = candidate(1024, 0, 0);
  record.verdict = verdict;
  record.reason = reason;
  return record;
}

cache::Publication tuned_sum() {
  cache::Publication publication;
  publication.key = gpu_key(741456, 1482910);
  publication.winner.candidate = candidate(512, 4, 400);
  publication.winner.tuned = true;
  publication.winner.tuned_extents = {1 << 20, 1, 1};
  publication.winner.bytes_moved = 4 * (1 << 20) + 4;
  publication.winner.median_us = 2.8;
  publication.winner.spread_us = 0.05;
  publication.binary = {"cubin", "sm_90", std::vector<std::byte>(6144)};
  cache::TuningRecord tuning;
  tuning.compile_ms = 1234;
  tuning.measure_ms = 765;
  tuning.trials = {trial(512, 2.8),
                   trial(256, 2.94),
                   trial(1024, 5.6),
                   rejected("rejected", "spills: 16 bytes of local memory per thread"),
                   rejected("rejected", "spills: 24 bytes of local memory per thread"),
                   rejected("failed", "it did not compile\nlog line")};
  tuning.trials[1].is_default = true;
  publication.tuning = tuning;
  return publication;
}

cache::Publication heuristic_max_on_host() {
  cache::Publication publication;
  publication.key = gpu_key(1, 181);
  publication.key.device = {"host", "Invented CPU", "x86_64", "name=Invented CPU;", 2, 1024, 0};
  publication.key.toolchain = {"g++ 12.2.0", "glibc 2.36", "0123456789abcdef0123456789abcdef"};
  publication.key.problem.operation = "max";
  publication.winner.candidate = candidate(128, 1, 1);
  publication.winner.candidate.registers = 0;
  publication.binary = {"elf", "x86_64", std::vector<std::byte>(100)};
  return publication;
}

/// Another class that the winner of tuned_sum() serves, unmeasured.
cache::Publication lent(std::int64_t first, std::int64_t last) {
  cache::Publication publication = tuned_sum();
  publication.key.problem.sizes[0] = {first, last};
  publication.tuning.reset();
  return publication;
}

/// The age depends on when the test stored the row: blank it out together with the date.
std::string without_times(std::string text) {
  for (std::size_t at = text.find("stored      "); at != std::string::npos; at = std::string::npos) {
    text.replace(at, text.find('\n', at) - at, "stored      …");
  }
  return text;
}

class InspectTest : public ::testing::Test {
 protected:
  CommandRun inspect(std::vector<std::string> args = {}, int columns = 0) {
    args.insert(args.begin(), "inspect");
    Environment environment = isolated_environment(path_);
    environment.out_columns = [columns] { return columns; };
    environment.unix_time = [this] { return store_.winners().back().created_at + 3 * 3600; };
    return testing::run_hone(args, environment);
  }

  nlohmann::json json(std::vector<std::string> args) {
    args.push_back("--json");
    return nlohmann::json::parse(inspect(std::move(args)).out).at("winners");
  }

  void fill() {
    store_.publish(tuned_sum());
    store_.publish(heuristic_max_on_host());
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "cache.sqlite";
  cache::Store store_{path_};
};

TEST_F(InspectTest, MissingCacheSaysWhatToRun) {
  const CommandRun run = testing::run_hone({"inspect"}, isolated_environment(path_));
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "hone: there is no cache file " + path_.string() + " yet; fill it with: hone tune --cache '" +
                         path_.string() + "'\n");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(InspectTest, MissingCacheIsAnEmptyListInJson) {
  const CommandRun run = testing::run_hone({"inspect", "--json"}, isolated_environment(path_));
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(nlohmann::json::parse(run.out).at("winners").empty());
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

TEST_F(InspectTest, ShowsOneWinnerInDetail) {
  fill();
  const CommandRun run = inspect({"1"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(without_times(run.out),
            "Winner 1: reduce sum f32 for n = 741456..1482910, alignment 16\n"
            "\n"
            "  device      Invented GPU (cuda, sm_90): 100 SMs, 3000 GB/s\n"
            "  identity    name=Invented GPU;sm_count=100;\n"
            "  driver      13.0\n"
            "  compiler    nvrtc 13.0.88\n"
            "  family      reduce, digest 0123456789abcdef0123456789abcdef\n"
            "  numerics    fast\n"
            "  context     stream\n"
            "  stored      …\n"
            "\n"
            "  candidate   block_threads=512 vector_bytes=16 unroll=4 tail=warp finish=last_block\n"
            "  grid        at most 400 blocks, 512 threads each\n"
            "  resources   32 registers and 0 B of local memory a thread, 128 B of shared memory a block\n"
            "  occupancy   100 %: 4 resident blocks × 512 threads of 2048 per SM\n"
            "  measured    2.80 µs ± 0.05 at n = 1048576: 1498 GB/s, 50 % of the device's\n"
            "  binary      6 KiB\n"
            "\n"
            "6 candidates, 3 measured; compiling 1.2 s, measuring 0.8 s\n"
            "  #  candidate                     blocks  regs  occupancy  in flight/SM  predicted µs    µs  ± µs     "
            "gap  samples  note\n"
            "  1  512t 16B x4 warp last_block      400    32      100 %       128 KiB          9.00  2.80  0.10  "
            "+0.0 %       20  winner\n"
            "  2  256t 16B x4 warp last_block      800    32      100 %       128 KiB          9.00  2.94  0.10  "
            "+5.0 %       20  default\n"
            "  3  1024t 16B x4 warp last_block     200    32      100 %       128 KiB          9.00  5.60  0.10  "
            "+100 %       20\n"
            "\n"
            "Not measured, or not usable\n"
            "  count  verdict   reason\n"
            "      2  rejected  spills: … bytes of local memory per thread\n"
            "      1  failed    it did not compile\n");
}

TEST_F(InspectTest, ProblemsNameAWinnerAsIdsDo) {
  fill();
  EXPECT_EQ(inspect({"--op", "sum", "--dtype", "f32", "--size", "1Mi"}).out, inspect({"1"}).out);
}

TEST_F(InspectTest, AllShowsRejectedCandidatesInPlace) {
  fill();
  EXPECT_THAT(inspect({"1", "--all"}).out, Names("rejected", "spills", "16 bytes"));
}

TEST_F(InspectTest, UntunedWinnersHaveNoRunnersUp) {
  fill();
  const CommandRun run = inspect({"2"});
  EXPECT_THAT(run.out, HasLine("measured", "never", "occupancy", "model's", "first", "choice"));
  EXPECT_THAT(run.out, Not(HasSubstr("candidates,")));
}

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
                      "hone tune reduce --op sum --dtype f32 --size 2224366"));
  const CommandRun run = testing::run_hone({"explain", "1"}, isolated_environment(path_));
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, Names("served", "512t"));
  EXPECT_THAT(run.out, Names("tuned", "1048576", "nearest", "shape"));
}

TEST_F(InspectTest, AClassServedByAnotherSizesMeasurementSaysSoAndHasNoFigures) {
  store_.publish(tuned_sum());
  cache::Publication other = lent(1482911, 2965821);
  other.winner.candidate = candidate(256, 8, 800);  // a runner-up of the tuned size
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

TEST_F(InspectTest, UnknownRegistersAreNotCalledZero) {
  fill();
  EXPECT_THAT(inspect({"2"}).out, HasLine("resources", "128 B"));
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

TEST_F(InspectTest, JsonHoldsKeyWinnerAndTrials) {
  fill();
  const auto list = nlohmann::json::parse(inspect({"--json"}).out);
  EXPECT_EQ(list.at("winners").size(), 2U);
  EXPECT_FALSE(list.at("winners")[0].contains("tuning"));
  const auto detail = nlohmann::json::parse(inspect({"1", "--json"}).out).at("winners").at(0);
  EXPECT_EQ(detail.at("device").at("architecture"), "sm_90");
  EXPECT_EQ(detail.at("problem").at("sizes").at(0).at("last"), 1482910);
  EXPECT_EQ(detail.at("candidate").at("max_blocks"), 400);
  EXPECT_DOUBLE_EQ(detail.at("occupancy").get<double>(), 1.0);
  EXPECT_EQ(detail.at("tuning").at("trials").size(), 6U);
  EXPECT_EQ(detail.at("tuning").at("trials").at(5).at("verdict"), "failed");
}

TEST_F(InspectTest, NamesFromTheFileCannotWriteToTheTerminal) {
  cache::Publication publication = tuned_sum();
  publication.key.device.name = "evil\x1b[2J";
  store_.publish(publication);
  EXPECT_THAT(inspect().out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(inspect({"1"}).out, Not(HasSubstr("\x1b")));
}

TEST(CountReasons, RowsOfAFileCountAsWhatWasStored) {
  const auto spills = [](int bytes) { return Reason(ReasonCode::spills, {double(bytes)}).text(); };
  const auto counts =
      count_reasons({trial(256, 1), rejected("failed", "a"), rejected("rejected", Reason(ReasonCode::one_block).text()),
                     rejected("rejected", spills(8)), rejected("rejected", spills(16) + " (3 policies)")});
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts[0].count, 4);
  EXPECT_EQ(counts[0].reason.code, ReasonCode::spills);
  EXPECT_TRUE(counts[0].varies);
  EXPECT_EQ(counts[1].reason, "a");
  EXPECT_EQ(counts[2].reason.code, ReasonCode::one_block);
}

}  // namespace
}  // namespace hone::tuner
