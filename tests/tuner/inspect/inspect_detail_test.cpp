// hone inspect of one winner: its resources, its runners-up, and what was rejected.
#include <gmock/gmock.h>

#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>
#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tests/tuner/inspect/inspect_fixture.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using test::HasLine;
using test::Names;
using ::testing::Not;

/// The age depends on when the test stored the row: blank it out together with the date.
std::string without_times(std::string text) {
  for (std::size_t at = text.find("stored      "); at != std::string::npos; at = std::string::npos) {
    text.replace(at, text.find('\n', at) - at, "stored      …");
  }
  return text;
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
            "  objective   time\n"
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

TEST_F(InspectTest, AWinnerWhosePolicyTheFamilyDoesNotHaveIsNotUsed) {
  cache::Publication publication = tuned_sum();
  publication.winner.candidate.policy = "block_threads=512 vector_bytes=16 unroll=5 tail=warp finish=last_block";
  store_.publish(publication);
  EXPECT_THAT(inspect().err, "") << "sessions do not look at rows of another source of the kernel";
  publication.key.toolchain.family_digest = family_digest(reduce_family());
  store_.publish(publication);
  EXPECT_THAT(inspect().err, Names("winner 2 is not used", "'unroll=5", "no policy of reduce", "hone inspect 2"));
  EXPECT_THAT(inspect({"2"}).out, HasLine("not used", "'unroll=5", "hone tune reduce --op sum", "--again"));
  EXPECT_THAT(json({"2"})[0]["misfit"].get<std::string>(), Names("'unroll=5"));
  EXPECT_EQ(json({"1"})[0]["misfit"], nullptr);
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

TEST_F(InspectTest, UnknownRegistersAreNotCalledZero) {
  fill();
  EXPECT_THAT(inspect({"2"}).out, HasLine("resources", "128 B"));
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

TEST(CountReasons, RowsOfAFileCountAsWhatWasStored) {
  const auto spills = [](int bytes) { return Reason(ReasonCode::spills, {double(bytes)}).text(); };
  const auto counts =
      count_reasons({stored_trial(256, 1), rejected_trial("failed", "a"),
                     rejected_trial("rejected", Reason(ReasonCode::one_block).text()),
                     rejected_trial("rejected", spills(8)), rejected_trial("rejected", spills(16) + " (3 policies)")});
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts[0].count, 4);
  EXPECT_EQ(counts[0].reason.code, ReasonCode::spills);
  EXPECT_TRUE(counts[0].varies);
  EXPECT_EQ(counts[1].reason, "a");
  EXPECT_EQ(counts[2].reason.code, ReasonCode::one_block);
}

}  // namespace
}  // namespace hone::tuner
