#include <hone/reason.h>

#include <gtest/gtest.h>

#include <set>

namespace hone {
namespace {

constexpr auto kLast = static_cast<int>(ReasonCode::wrong_result);

Reason sample(ReasonCode code) {
  Reason reason(code, {12, 3.25, 400000000000});
  reason.detail = "what was said";
  return reason;
}

TEST(Reason, IsReadBackFromItsText) {
  std::set<std::string> texts;
  for (int code = 0; code <= kLast; ++code) {
    const Reason reason = sample(static_cast<ReasonCode>(code));
    const Reason read = CountedReason::parse(reason.text()).reason;
    EXPECT_EQ(read.code, reason.code) << reason;
    EXPECT_EQ(read.text(), reason.text());
    EXPECT_TRUE(texts.insert(reason.text()).second) << reason;
  }
}

TEST(Reason, NumbersStandInTheWordsOfTheCode) {
  const Reason reason(ReasonCode::too_many_threads, {1024, 512});
  EXPECT_EQ(reason.text(), "1024 threads a block, the device allows 512");
  EXPECT_EQ(reason.general_text(), "… threads a block, the device allows …");
  EXPECT_EQ(CountedReason::parse(reason.text()).reason, reason);
  EXPECT_NE(Reason(ReasonCode::not_compiled_slower, {50}).text().find("50.00 µs"), std::string::npos);
}

TEST(Reason, TextsAreReasonsAndAnEmptyOneIsNone) {
  EXPECT_TRUE(Reason("").empty());
  EXPECT_EQ(Reason(""), Reason());
  EXPECT_EQ(Reason(std::string("too small")).text(), "too small");
  EXPECT_EQ(CountedReason::parse("too small").reason, Reason("too small"));
  EXPECT_EQ(CountedReason::parse("").reason, Reason());
}

TEST(Reason, IsLikeWhatDiffersInNumbersAndMessagesAlone) {
  const auto of = [](ReasonCode code, const char* detail) { return Reason(code, std::string(detail)); };
  EXPECT_TRUE(Reason(ReasonCode::spills, {8}).is_like({ReasonCode::spills, {16}}));
  EXPECT_FALSE(Reason(ReasonCode::spills, {8}).is_like(ReasonCode::one_block));
  EXPECT_TRUE(of(ReasonCode::wrong_result, "a").is_like(of(ReasonCode::wrong_result, "b")));
  EXPECT_FALSE(of(ReasonCode::pruned, "a").is_like(of(ReasonCode::pruned, "b")));
  EXPECT_FALSE(of(ReasonCode::pruned, "a").is_like("a"));
}

TEST(CountedReason, KeepsTheNumberOfPolicies) {
  for (const Reason& reason : {Reason("f(1) is (too small)"), Reason(ReasonCode::spills, {8})})
    for (const int policies : {1, 37}) {
      const CountedReason read = CountedReason::parse(CountedReason{reason, policies}.text());
      EXPECT_EQ(read.reason, reason);
      EXPECT_EQ(read.policies, policies);
    }
  EXPECT_EQ(CountedReason::parse("(x policies)").policies, 1);
}

}  // namespace
}  // namespace hone
