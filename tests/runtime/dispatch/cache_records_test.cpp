// Winners and code as records, and back.
#include "runtime/dispatch/cache_records.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "runtime/dispatch/winner_checks.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

class CacheRecordsTest : public testing::Test {
 protected:
  Winner winner(bool tuned = true) const {
    return make_winner(problem_,
                       {.candidate = {*family_.space().parse("threads=256 work=2 finish=joined"), {.max_blocks = 24}},
                        .resources = {.registers = 40, .static_smem_bytes = 128, .local_bytes = 8},
                        .resident_blocks = 3,
                        .median_us = 7.5,
                        .spread_us = 0.25},
                       tuned);
  }

  std::optional<Winner> read(const cache::WinnerRecord& record) const {
    return winner_of(problem_, record, range_records(size_ranges(problem_.extents)));
  }

  TotalFamily family_;
  Problem problem_ = family_.problem(1000);
};

TEST_F(CacheRecordsTest, AWinnerComesBackAsItWas) {
  for (const bool tuned : {true, false}) {
    const Winner written = winner(tuned);
    const std::optional<Winner> found = read(winner_record(problem_, written));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->candidate, written.candidate);
    EXPECT_EQ(found->resources, written.resources);
    EXPECT_EQ(found->resident_blocks, 3);
    EXPECT_EQ(found->tuned, tuned);
    EXPECT_EQ(found->median_us, tuned ? 7.5 : 0);
    EXPECT_EQ(found->tuned_extents, problem_.extents);
    EXPECT_EQ(found->sizes, written.sizes);
  }
}

TEST_F(CacheRecordsTest, ARowThatDoesNotFitTheSpaceIsNoWinner) {
  const cache::WinnerRecord good = winner_record(problem_, winner());
  cache::WinnerRecord record = good;
  record.candidate.policy = "threads=257 work=2 finish=joined";
  EXPECT_FALSE(read(record));
  record = good;
  record.candidate.max_blocks = 0;
  EXPECT_FALSE(read(record));
  record = good;
  record.candidate.block_threads = 128;
  EXPECT_FALSE(read(record)) << "the policy has blocks of 256";
}

TEST_F(CacheRecordsTest, BytesAreThoseOfTheSizeThatWasMeasured) {
  Winner borrowed = winner();
  borrowed.tuned_extents = {4000, 1, 1};
  EXPECT_EQ(winner_record(problem_, borrowed).bytes_moved, family_.bytes_moved(family_.problem(4000)));
}

TEST_F(CacheRecordsTest, CodeComesBackWithTheDigestOfItsUnit) {
  const Binary binary{.format = "cubin", .architecture = "sm_90", .code = {std::byte{1}}, .entries = {"a", "b"}};
  const std::optional<StoredCode> found = stored_code(binary_record(binary, "0123"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unit_digest, "0123");
  EXPECT_EQ(found->binary.format, "cubin");
  EXPECT_EQ(found->binary.architecture, "sm_90");
  EXPECT_EQ(found->binary.code, binary.code);
  EXPECT_EQ(found->binary.entries, binary.entries);
}

TEST_F(CacheRecordsTest, CodeOfAnUnknownUnitIsNotUsed) {
  EXPECT_FALSE(stored_code({.format = "cubin", .architecture = "sm_90", .code = {std::byte{1}}}));
}

TEST_F(CacheRecordsTest, DtypesNameWhatWasChosen) {
  Problem problem = problem_;
  EXPECT_EQ(dtypes_text(problem), "i32");
  problem.accumulator = DType::f64;
  EXPECT_EQ(dtypes_text(problem), "i32 in f64");
  problem.result = DType::f16;
  EXPECT_EQ(dtypes_text(problem), "i32 in f64 to f16");
}

TEST_F(CacheRecordsTest, ATuningKeepsEveryTrialAndCountsPoliciesOfOneReason) {
  Tuning tuning;
  tuning.problem = problem_;
  tuning.trials.push_back({.candidate = winner().candidate, .median_us = 7.5, .samples = 9, .verdict = Verdict::ok});
  tuning.trials.push_back({.candidate = winner().candidate, .policies = 3, .reason = "too many threads"});
  const cache::TuningRecord record = tuning_record(tuning);
  ASSERT_EQ(record.trials.size(), 2u);
  EXPECT_EQ(record.trials[0].verdict, "ok");
  EXPECT_EQ(record.trials[0].samples, 9);
  EXPECT_NE(record.trials[1].reason.find("3 policies"), std::string::npos);
}

TEST_F(CacheRecordsTest, AStoredTuningSaysWhyItsSearchEndedAndHowGoodTheModelWas) {
  Tuning tuning;
  tuning.problem = problem_;
  for (const double us : {7.0, 8.0, 9.0})
    tuning.trials.push_back({.candidate = winner().candidate,
                             .predicted_us = us - 1,
                             .median_us = us,
                             .samples = 9,
                             .verdict = Verdict::ok});
  const auto back = [&] { return tuning_of(problem_, tuning_record(tuning)); };
  EXPECT_EQ(back().search_end, SearchEnd::everything_searched);
  EXPECT_EQ(back().rank_correlation, 1);
  tuning.trials[0].predicted_us = 9;
  EXPECT_EQ(back().rank_correlation, -0.5);
  const auto end_with = [&](Reason reason) {
    Tuning other = tuning;
    other.trials.push_back({.candidate = winner().candidate, .policies = 3, .reason = std::move(reason)});
    return tuning_of(problem_, tuning_record(other)).search_end;
  };
  EXPECT_EQ(end_with("too many threads"), SearchEnd::everything_searched);
  EXPECT_EQ(end_with({ReasonCode::not_compiled_slower, {7.0}}), SearchEnd::rest_expected_slower);
  EXPECT_EQ(end_with({ReasonCode::not_measured_gain, {8.0, 7.0, 0.1}}), SearchEnd::rest_expected_slower);
  EXPECT_EQ(end_with(ReasonCode::not_compiled_near_roofline), SearchEnd::near_roofline);
  tuning.budget_spent = true;
  EXPECT_EQ(end_with(ReasonCode::not_compiled_budget), SearchEnd::budget_spent);
}

}  // namespace
}  // namespace hone
