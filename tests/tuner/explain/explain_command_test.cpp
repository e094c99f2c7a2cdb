#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>

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

TEST_F(ExplainTest, AWinnerWhosePolicyTheFamilyDoesNotHaveIsNotUsed) {
  cache::Publication sum = tuned_sum(28);
  sum.key.toolchain.family_digest = family_digest(reduce_family());
  sum.winner.candidate.policy += " extra=1";
  store_.publish(sum);
  EXPECT_THAT(explain({"1"}), ::testing::StartsWith("Not used: '"));
  EXPECT_THAT(explain({"1"}), Names("is no policy of reduce", "extra=1", "hone tune reduce --op sum"));
}

TEST_F(ExplainTest, AWinnerThatIsFasterThanItsRooflineTakesNoLess) {
  cache::Publication sum = tuned_sum(28);
  sum.winner.median_us *= 0.9;
  store_.publish(sum);
  const std::string out = explain({"1"});
  EXPECT_THAT(out, HasLine("limit", "launch and memory take all of the time"));
  EXPECT_THAT(out, Not(HasSubstr("at least")));
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

TEST_F(ExplainTest, ALentRunnerUpIsExplainedByItselfNotByTheWinnerBesideIt) {
  const cache::Publication tuned = tuned_sum(28);
  cache::Publication lent = lent_sum(28);
  const cache::TrialRecord& runner_up = tuned.tuning->trials[5];  // 256 threads, of which 8 blocks are resident
  lent.winner.candidate = runner_up.candidate;
  lent.winner.median_us = runner_up.median_us;
  store_.publish(tuned);
  store_.publish(lent);
  const std::string out = explain({"2"});
  EXPECT_THAT(out, HasLine("waves", "132", "1056"));
  EXPECT_THAT(out, HasLine("occupancy", "8 blocks", "256"));
  EXPECT_THAT(out, HasLine("in flight", "4 KiB"));
  EXPECT_THAT(out, HasLine("limit", "2224 GB/s"));
  EXPECT_THAT(out, HasLine("mattered", "unroll=1"));
}

TEST_F(ExplainTest, AWinnerIsNoCeilingOfItsOwn) {
  cache::Publication fast = tuned_sum(28), other = tuned_sum(27);
  fast.winner.median_us = 320;  // beyond what the model expects of the device
  other.winner.median_us = 162;
  store_.publish(fast);
  EXPECT_THAT(explain({"1"}), HasLine("limit", "3355 GB/s", "108 %", "model's", "3118"));
  store_.publish(other);
  EXPECT_THAT(explain({"1"}), HasLine("limit", "3355 GB/s", "101 %", "other winner's", "3314"));

  for (cache::Publication* publication : {&fast, &other}) {
    publication->key.device.kind = "host";  // of which the model knows no bandwidth
    publication->key.device.peak_bandwidth_gbps = 0;
    publication->key.device.identity = "kind=host;sm_count=132;";
  }
  store_.publish(fast);
  const std::string lone = explain({"3"});
  EXPECT_THAT(lone, HasLine("limit", "3355 GB/s", "neither the model nor another winner"));
  EXPECT_THAT(lone, Not(HasLine("limit", "100 %")));
  EXPECT_TRUE(json::parse(explain({"3", "--json"}))["winners"][0]["read_ceiling_gbps"].is_null());
  other.winner.median_us = 324;  // half as fast
  store_.publish(other);
  EXPECT_THAT(explain({"3"}), HasLine("limit", "3355 GB/s", "neither the model nor another winner"));
}

TEST_F(ExplainTest, ALowerMedianThatLostIsNotCalledSlower) {
  cache::Publication sum = tuned_sum(28);
  sum.tuning->trials[1].median_us = 0.97 * sum.winner.median_us;
  store_.publish(sum);
  const std::string out = explain({"1"});
  EXPECT_THAT(out, HasLine("gain", "0.97 times", "side by side"));
  EXPECT_THAT(out, HasLine("1", "beaten", "side by side", "lower median", "-3.0 %"));
  EXPECT_THAT(out, HasLine("4", "beaten", "slower"));
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

  const auto stand_in = [&](const std::string& script) {
    testing::write_file(tools / "ncu", "#!/bin/sh\n" + script);
    std::filesystem::permissions(tools / "ncu", std::filesystem::perms::owner_all);
    return hone({"explain", "1", "--counters"});
  };
  const std::string table =
      "echo '==PROF== Connected'\n"
      "echo '\"ID\",\"Kernel Name\",\"dram__bytes_read.sum\",\"gpu__time_duration.sum\"'\n"
      "echo '\"\",\"\",\"byte\",\"ns\"'\necho '\"0\",\"first\",\"1,073,741,824\",\"358,112\"'\n"
      "echo '\"1\",\"second\",\"512\",\"n/a\"'\n";
  // It does not know a metric, and is asked again without.
  const testing::CommandRun counted =
      stand_in("echo \"$@\" >> " + seen.string() +
               "\ncase \"$*\" in *waves_per*) echo '==ERROR== Failed to find metric launch__waves_per_multiprocessor'; "
               "exit 1;; esac\n" +
               table);
  EXPECT_EQ(counted.code, 0) << counted.err;
  EXPECT_THAT(counted.out, HasLine("time", "358.1", "–", "µs"));
  EXPECT_THAT(counted.out, HasLine("read from memory", "1073.7", "MB"));
  EXPECT_THAT(counted.out, HasLine("kernel 2", "second"));
  std::ifstream in(seen);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}),
              Names("--csv", "--page raw", "--metrics", path_.string() + " 1 auto"));

  stand_in(table);
  const testing::CommandRun as_json = hone({"explain", "1", "--counters", "--json"});
  const json kernels = json::parse(as_json.out)["winners"][0]["counted_kernels"];
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0]["kernel"], "first");
  EXPECT_EQ(kernels[0]["counters"]["gpu__time_duration.sum"]["value"], 358112);
  EXPECT_TRUE(kernels[1]["counters"]["gpu__time_duration.sum"]["value"].is_null());

  const testing::CommandRun failed = stand_in("echo 'out of memory\x1b[31m' >&2\nexit 3\n");
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, Names("out of memory", "--metrics"));
  EXPECT_THAT(failed.err, Not(HasSubstr("\x1b")));
  EXPECT_EQ(stand_in("echo '==WARNING== No kernels were profiled.'\n").code, 1);
  EXPECT_THAT(stand_in("echo '==ERROR== ERR_NVGPUCTRPERM'\nexit 1\n").err,
              Names("NVreg_RestrictProfilingToAdminUsers"));
}

TEST_F(ExplainTest, CountersNeedAGpuAndABuiltInFamily) {
  cache::Publication host = tuned_sum(28), own = tuned_sum(28);
  host.key.device.kind = "host";
  own.key.problem.family = "own";
  store_.publish(host);
  store_.publish(own);
  EXPECT_EQ(hone({"explain", "1", "--counters"}).code, 2);
  EXPECT_EQ(hone({"explain", "2", "--counters"}).code, 6);
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
