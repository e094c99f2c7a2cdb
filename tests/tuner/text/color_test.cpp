#include "tuner/text/color.h"

#include <gmock/gmock.h>

#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;
using testing::isolated_environment;
using ::testing::Not;
using testing::run_hone;
using ::testing::StartsWith;

TEST(Color, IsOffUntilAStreamHasIt) {
  std::ostringstream out;
  out << paint("text", Paint::red);
  EXPECT_EQ(out.str(), "text");
  set_color(out, true);
  out << paint("text", Paint::red);
  EXPECT_EQ(out.str(), "text\x1b[1;31mtext\x1b[0m");
}

TEST(Color, HeadersOfTablesAreBoldAndRowsAreNot) {
  std::ostringstream out;
  set_color(out, true);
  Table table({{"a"}, {"b", Align::right}});
  table.add_row({"x", "1"});
  table.print(out);
  EXPECT_EQ(out.str(), "\x1b[1ma  b\x1b[0m\nx  1\n");
}

TEST(Color, OfTheCommandFollowsTerminalAndOption) {
  Environment terminal = isolated_environment();
  terminal.out_columns = terminal.err_columns = [] { return 80; };
  terminal.may_color = true;
  EXPECT_THAT(run_hone({"frobnicate"}, terminal).err, StartsWith("\x1b[1;31mhone:\x1b[0m unknown"));
  EXPECT_THAT(run_hone({"devices"}, terminal).out, StartsWith("\x1b[1m"));
  EXPECT_THAT(run_hone({"devices", "--color", "never"}, terminal).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_hone({"--color=never", "devices"}, terminal).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_hone({"devices", "--color", "always"}).out, StartsWith("\x1b[1m"));
  EXPECT_THAT(run_hone({"devices", "--json", "--color=always"}).out, StartsWith("{"));
  EXPECT_THAT(run_hone({"devices"}).out, Not(HasSubstr("\x1b")));
  terminal.may_color = false;  // NO_COLOR
  EXPECT_THAT(run_hone({"devices"}, terminal).out, Not(HasSubstr("\x1b")));
}

TEST(Color, AnotherWordIsRefused) {
  const auto run = run_hone({"devices", "--color", "alway"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, test::Names("did you mean 'always'?"));
}

}  // namespace
}  // namespace hone::tuner
