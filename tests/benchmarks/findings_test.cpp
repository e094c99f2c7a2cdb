#include "benchmarks/tuner_regret/findings.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/names.h"

namespace hone::benchmarks {
namespace {

using ::testing::HasSubstr;
using test::Names;

Finding finding(const std::string& part, double chosen_us, double reference_us, std::int64_t n = 1024) {
  return {.part = part, .problem = "sum f32", .n = n, .chosen = "a", .reference = "b", .chosen_us = chosen_us,
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
      summarise({finding("regret", 5, 5), finding("regret", 5.1, 5, 2048), finding("untuned", 5.05, 5)});
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].part, "regret");
  EXPECT_EQ(summaries[0].rows, 2U);
  EXPECT_NEAR(summaries[0].worst, 0.02, 1e-12);
  EXPECT_EQ(summaries[0].worst_at, "sum f32 n=2048");
  EXPECT_NEAR(summaries[0].mean, 0.01, 1e-12);
  EXPECT_NEAR(summaries[0].measured_share, 0.15, 1e-12);
  EXPECT_NEAR(summaries[1].worst, 0.01, 1e-12);
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
