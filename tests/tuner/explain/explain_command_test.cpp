#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/report/report_fixture.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using test::HasLine;
using test::Names;
using ::testing::HasSubstr;
using ::testing::Not;

class ExplainTest : public ReportTest {
 protected:
  std::string explain(std::vector<std::string> words) const {
    words.insert(words.begin(), "explain");
    const testing::CommandRun run = hone(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }
};

TEST_F(ExplainTest, TenLinesComeFirst) {
  store_.publish(tuned_sum(28));
  const std::string out = explain({"1"});
  const std::string first = out.substr(0, out.find("\n\n"));
  EXPECT_EQ(std::ranges::count(first, '\n'), 9);
  EXPECT_THAT(first, HasLine("limit", "memory bandwidth", "2978", "3118", "96 %"));
  EXPECT_THAT(first, HasLine("waves", "less than one", "132", "528"));
  EXPECT_THAT(first, HasLine("in flight", "32 KiB", "12.7 KiB", "enough"));
  EXPECT_THAT(first, HasLine("occupancy", "100 %", "4 blocks", "512", "32 registers"));
  EXPECT_THAT(first, HasLine("mattered", "unroll=4", "next 2 +20 %", "worst 1 +30 %", "block_threads=512"));
  EXPECT_THAT(first, HasLine("never tried", "block_threads=1024", "pruned"));
  EXPECT_THAT(first, HasLine("gain", "1.34× as fast", "1.03× as fast"));
  EXPECT_THAT(first, HasLine("found", "6 of 8 candidates"));
}

TEST_F(ExplainTest, LinesFitTheTerminal) {
  store_.publish(tuned_sum(28));
  Environment environment = testing::isolated_environment(path_);
  environment.out_columns = [] { return 80; };
  const std::string out = testing::run_hone({"explain", "1"}, environment).out;
  std::istringstream lines(out.substr(out.find("  limit"), out.find("\n\n") - out.find("  limit")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
  std::string joined = out;
  for (std::size_t at; (at = joined.find("\n              ")) != std::string::npos;) joined.replace(at, 15, " ");
  EXPECT_THAT(joined, HasSubstr(explain({"1"}).substr(0, 900))) << "nothing is lost";
}

TEST_F(ExplainTest, CandidatesAreGroupedByReason) {
  cache::Publication sum = tuned_sum(28);
  cache::TrialRecord rejected = sum.tuning->trials.back();
  rejected.reason = "spills: 24 bytes of local memory per thread";
  sum.tuning->trials.push_back(rejected);
  rejected.reason = "vectors are wider than a load of the device (440 policies)";
  sum.tuning->trials.push_back(rejected);
  store_.publish(sum);
  const std::string out = explain({"1"});
  EXPECT_THAT(out, HasLine("1", "won", "512t 16B x4"));
  EXPECT_THAT(out, HasLine("5", "beaten", "256t 16B x4", "+3.0 %"));
  EXPECT_THAT(out, HasLine("2", "rejected", "spills: … bytes"));
  EXPECT_THAT(out, HasLine("440", "rejected", "wider"));
  EXPECT_THAT(out, HasLine("found", "6 of 449 candidates"));
  const std::string all = explain({"1", "--all"});
  EXPECT_THAT(all, HasLine("256t 16B x1", "beaten"));
  EXPECT_THAT(all, HasLine("rejected", "24 bytes"));
}

TEST_F(ExplainTest, TheJsonHasTheLimitAndTheParameters) {
  store_.publish(tuned_sum(10));
  const json winner = json::parse(explain({"1", "--json"}))["winners"][0];
  EXPECT_EQ(winner["limit"], "launch");
  EXPECT_EQ(winner["parameters"][0]["name"], "unroll");
  EXPECT_EQ(winner["parameters"][0]["values"].size(), 3U);
  EXPECT_EQ(winner["blocks_of_a_wave"], 528);
  EXPECT_FALSE(winner["never_tried"].empty());
  EXPECT_EQ(winner["candidates"].size(), 8U);
}

TEST_F(ExplainTest, ALentWinnerIsExplainedByItsTrials) {
  store_.publish(tuned_sum(28));
  store_.publish(lent_sum(28));
  EXPECT_THAT(explain({"2"}), HasLine("limit", "memory bandwidth"));
}

/// PATH is this folder alone while it lives.
class PathOf {
 public:
  explicit PathOf(const std::filesystem::path& folder) : before_(getenv("PATH")) { setenv("PATH", folder.c_str(), 1); }
  ~PathOf() { setenv("PATH", before_.c_str(), 1); }
  PathOf(const PathOf&) = delete;
  PathOf& operator=(const PathOf&) = delete;

 private:
  std::string before_;
};

TEST_F(ExplainTest, CountersAreThoseOfNsightCompute) {
  store_.publish(tuned_sum(28));
  const std::filesystem::path tools = folder_ / "tools", seen = folder_ / "seen";
  std::filesystem::create_directory(tools);
  const PathOf path(tools);
  const testing::CommandRun without = hone({"explain", "1", "--counters"});
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.out, HasLine("limit", "memory bandwidth"));
  EXPECT_THAT(without.err, Names("ncu", "dram__bytes_read.sum", path_.string(), "auto"));

  testing::write_file(tools / "ncu", "#!/bin/sh\necho \"$@\" > " + seen.string() + "\n");
  std::filesystem::permissions(tools / "ncu", std::filesystem::perms::owner_all);
  EXPECT_EQ(hone({"explain", "1", "--counters"}).code, 0);
  std::ifstream in(seen);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), Names("--metrics", path_.string() + " 1 auto"));

  testing::write_file(tools / "ncu", "#!/bin/sh\nexit 3\n");
  EXPECT_EQ(hone({"explain", "1", "--counters"}).code, 1);
}

TEST_F(ExplainTest, CountersNeedAGpuAndABuiltInFamily) {
  cache::Publication host = tuned_sum(28), own = tuned_sum(28);
  host.key.device.kind = "host";
  own.key.problem.family = "own";
  store_.publish(host);
  store_.publish(own);
  EXPECT_EQ(hone({"explain", "1", "--counters"}).code, 2);
  EXPECT_EQ(hone({"explain", "2", "--counters"}).code, 6);
  EXPECT_EQ(hone({"explain", "1", "--counters", "--json"}).code, 2);
}

TEST_F(ExplainTest, NamesOutOfTheFileAreText) {
  cache::Publication hostile = tuned_sum(28);
  hostile.key.device.name = "GPU\x1b[31m";
  hostile.tuning->trials.back().reason = "\x1b]0;title\x07";
  hostile.tuning->trials[1].candidate.policy = "block_threads=\x1b[2J";
  store_.publish(hostile);
  EXPECT_THAT(explain({"1"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(explain({"1", "--all"}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace hone::tuner
