#include "tuner/text/quantities.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/names.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using test::Names;

std::string refusal(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Quantities, NumbersAreDecimalHexadecimalOrNone) {
  EXPECT_EQ(parse_number("-2.5"), -2.5);
  EXPECT_EQ(parse_number("1e6"), 1e6);
  EXPECT_EQ(parse_number("+1_000"), 1000);
  EXPECT_EQ(parse_number("0x1.8p3"), 12);
  EXPECT_EQ(parse_number("-0x10"), -16);
  EXPECT_EQ(parse_number("inf"), INFINITY);
  EXPECT_EQ(parse_number("-inf"), -INFINITY);
  EXPECT_TRUE(std::isnan(parse_number("nan").value()));
  for (const char* const text : {"", "-", "--1", "+-1", "0x", "1_", "_1", "1e400", "1 ", " 1", "1x"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

TEST(ParseSize, ReadsEverySpelling) {
  EXPECT_EQ(parse_size("1000"), 1000);
  EXPECT_EQ(parse_size("1_000_000"), 1'000'000);
  EXPECT_EQ(parse_size("2^20"), 1 << 20);
  EXPECT_EQ(parse_size("10^3"), 1000);
  EXPECT_EQ(parse_size("1e6"), 1'000'000);
  EXPECT_EQ(parse_size("64k"), 64'000);
  EXPECT_EQ(parse_size("64Ki"), 65'536);
  EXPECT_EQ(parse_size("1Mi"), 1 << 20);
  EXPECT_EQ(parse_size("3G"), 3'000'000'000);
  EXPECT_EQ(parse_size("2^53"), kMaxSize);
  EXPECT_EQ(parse_size("1^999999999999"), 1);
  EXPECT_EQ(parse_size("1.5e6"), 1'500'000);
  EXPECT_EQ(parse_size("1.50M"), 1'500'000);
  EXPECT_EQ(parse_size("1.5Mi"), 3 << 19);
  EXPECT_EQ(parse_size("0.25Ki"), 256);
  EXPECT_EQ(parse_size("1000.0"), 1000);
  EXPECT_EQ(parse_size("2^0"), 1);
}

TEST(ParseSize, RefusesWithTheReason) {
  EXPECT_THAT(refusal([] { parse_size(""); }), Names("empty"));
  EXPECT_THAT(refusal([] { parse_size("-5"); }), Names("negative"));
  EXPECT_THAT(refusal([] { parse_size("0"); }), Names("least", "1 element"));
  EXPECT_THAT(refusal([] { parse_size("many"); }), Names("not begin"));
  EXPECT_THAT(refusal([] { parse_size("4KB"); }), Names("'KB'", "no unit"));
  EXPECT_THAT(refusal([] { parse_size("2^"); }), Names("exponent"));
  EXPECT_THAT(refusal([] { parse_size("2^x"); }), Names("exponent"));
  EXPECT_THAT(refusal([] { parse_size("1.5"); }), Names("no whole"));
  EXPECT_THAT(refusal([] { parse_size("1.2345e3"); }), Names("no whole"));
  EXPECT_THAT(refusal([] { parse_size("0x100"); }), Names("no unit"));
  EXPECT_THAT(refusal([] { parse_size("1.5e"); }), Names("exponent"));
}

TEST(ParseSize, RefusesAbsurdSizesWithoutOverflow) {
  for (const char* text : {"2^54", "2^9999999999", "99999999999999999999999", "1e18", "9999T", "0e99999999999999999999",
                           "9223372036854775807Ti"}) {
    EXPECT_FALSE(refusal([&] { parse_size(text); }).empty()) << text;
  }
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("2s"), milliseconds(2000));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_duration("2min"), milliseconds(120'000));
  EXPECT_EQ(parse_duration("2m"), milliseconds(120'000));
  EXPECT_EQ(parse_duration("1h"), milliseconds(3'600'000));
}

TEST(ParseDuration, RefusesWhatIsNoTime) {
  for (const char* text : {"", "2", "s", "2 s", "-1s", "0s", "nans", "infs", "100h", "1e300h"}) {
    EXPECT_THAT(refusal([&] { parse_duration(text); }), Names("500ms")) << text;
  }
}

TEST(Format, SizesAndBytes) {
  EXPECT_EQ(format_size(1 << 20), "2^20");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(4), "4");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(50LL << 20), "50 MiB");
  EXPECT_EQ(format_bytes(233472), "228 KiB");
  EXPECT_EQ(format_bytes(85'031'714'816), "79.2 GiB");
  EXPECT_EQ(format_bytes(1500), "1.46 KiB");
}

TEST(Format, Counts) {
  EXPECT_EQ(count_text(1, "winner"), "1 winner");
  EXPECT_EQ(count_text(0, "winner"), "0 winners");
  EXPECT_EQ(count_text(2, "binary"), "2 binaries");
}

TEST(Format, Times) {
  EXPECT_EQ(format_us(2.684), "2.68");
  EXPECT_EQ(format_us(345.82), "345.8");
  EXPECT_EQ(format_us(1379.4), "1379");
  EXPECT_EQ(format_duration(milliseconds(400)), "0.4 s");
  EXPECT_EQ(format_duration(milliseconds(12'300)), "12 s");
  EXPECT_EQ(format_duration(milliseconds(200'000)), "3 min 20 s");
  EXPECT_EQ(format_duration(milliseconds(7'500'000)), "2 h 5 min");
  EXPECT_EQ(format_duration(milliseconds(-5)), "0.0 s");
  EXPECT_EQ(format_age(59), "59 s");
  EXPECT_EQ(format_age(300), "5 min");
  EXPECT_EQ(format_age(7200), "2 h");
  EXPECT_EQ(format_age(4 * 86'400), "4 d");
  EXPECT_EQ(format_age(-3), "0 s");
}

}  // namespace
}  // namespace hone::tuner
