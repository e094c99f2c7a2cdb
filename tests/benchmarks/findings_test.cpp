#include "benchmarks/tuner_regret/findings.h"

#include <gmock/gmock.h>

#include <utility>

#include <hone/hone.h>
#include <nlohmann/json.hpp>

#include "benchmarks/tuner_regret/judge.h"

#include "tests/support/names.h"

namespace hone::benchmarks {
namespace {

using ::testing::HasSubstr;
using test::Names;

Finding finding(const std::string& part, double chosen_us, double reference_us,
                const std::string& problem = "sum f32 n=1024") {
  return {.part = part, .problem = problem, .chosen = "a", .reference = "b", .chosen_us = chosen_us,
          .reference_us = reference_us, .measured = 3, .candidates = 20};
}

TEST(Findings, RegretIsHowMuchLongerTheChoiceTakes) {
  EXPECT_NEAR(finding("regret", 5.1, 5).regret(), 0.02, 1e-12);
  EXPECT_NEAR(finding("untuned", 4.9, 5).regret(), -0.02, 1e-12);
  EXPECT_NEAR(finding("stability", 5, 5.1).regret(), 0.02, 1e-12) << "either may be slower";
  EXPECT_EQ(finding("regret", 0, 0).regret(), 0) << "one and the same candidate";
}

TEST(Findings, PartsAreSummedUpApart) {
  const std::vector<Summary> summaries =
      summarise({finding("regret", 5, 5), finding("regret", 5.1, 5, "sum f32 n=2048"), finding("untuned", 5.05, 5)});
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].part, "regret");
  EXPECT_EQ(summaries[0].rows, 2U);
  EXPECT_NEAR(summaries[0].worst, 0.02, 1e-12);
  EXPECT_EQ(summaries[0].worst_at, "sum f32 n=2048");
  EXPECT_NEAR(summaries[0].mean, 0.01, 1e-12);
  EXPECT_NEAR(summaries[0].measured_share, 0.15, 1e-12);
  EXPECT_NEAR(summaries[1].worst, 0.01, 1e-12);
}

TEST(Findings, WhatTheHostPacesCountsForNothing) {
  Finding paced = finding("families", 4, 2);
  paced.is_paced = true;
  const Summary summary = summarise({paced, finding("families", 5.05, 5, "sum f32 n=2048")}).at(0);
  EXPECT_EQ(summary.rows, 1U);
  EXPECT_EQ(summary.paced, 1U);
  EXPECT_NEAR(summary.worst, 0.01, 1e-12);
  EXPECT_THAT(to_table({paced}, {}), Names("families", "0 rows", "1 further rows"));
}

TEST(Findings, SamplesAreToldFromWholeSpaces) {
  Finding whole = finding("families", 5, 5), sampled = whole;
  whole.policies = whole.tried = 70;
  sampled.policies = 900, sampled.tried = 64;
  EXPECT_EQ(summarise({whole, sampled}).at(0).sampled, 1U);
  EXPECT_THAT(to_table({whole, sampled}, {}), Names("70/70", "64/900", "1 next to a sample"));
}

TEST(Findings, TheLargestLossComesFirst) {
  const std::string table = to_table({finding("regret", 5, 5, "small"), finding("regret", 6, 5, "large")}, {});
  EXPECT_LT(table.find("large"), table.find("small"));
}

TEST(Findings, TheReferenceIsTheFastestOfAllOrTheFirstRival) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, 1024);
  const Policy policy = reduce_family().space().all().front();
  const Rivalry rivalry{.problem = problem, .candidates = {{policy, {1}}, {policy, {2}}, {policy, {3}}}};
  const auto reference_us = [&](const std::string& part, std::vector<double> us) {
    Finding concluded = finding(part, 0, 0);
    return conclude(rivalry, {.us = std::move(us)}, concluded) ? concluded.reference_us : -1;
  };
  EXPECT_EQ(reference_us("families", {5, 4, 3}), 3);
  EXPECT_EQ(reference_us("families", {2, 4, 3}), 2);
  EXPECT_EQ(reference_us("families", {5, 4, 0}), 4) << "one was wrong, or failed";
  EXPECT_EQ(reference_us("stability", {5, 4, 3}), 4);
  testing::internal::CaptureStderr();
  EXPECT_EQ(reference_us("families", {0, 4, 3}), -1) << "the choice has no time";
  EXPECT_EQ(reference_us("stability", {5, 0, 0}), -1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Names("blocks=1"));
}

TEST(Findings, TableAndJsonSayTheSame) {
  const std::vector<Finding> findings{finding("regret", 5.1, 5)};
  const std::vector<TimedCampaign> campaigns{{"hone tune", 12.5, 0, "1 tuned\n"}};
  EXPECT_THAT(to_table(findings, campaigns),
              Names("regret", "1 rows", "worst", "2.00 %", "sum", "f32", "n=1024", "15.0 %"));
  EXPECT_THAT(to_table(findings, campaigns), HasSubstr("12.5 s (exit code 0): hone tune\n1 tuned\n"));
  const auto json = to_json(findings, campaigns);
  EXPECT_NEAR(json["rows"][0]["regret"].get<double>(), 0.02, 1e-12);
  EXPECT_EQ(json["campaigns"][0]["seconds"], 12.5);
}

}  // namespace
}  // namespace hone::benchmarks
