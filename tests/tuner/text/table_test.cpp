#include "tuner/text/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hone::tuner {
namespace {

std::string print(const Table& table, int width = 0, int indent = 0) {
  std::ostringstream out;
  table.print(out, width, indent);
  return out.str();
}

TEST(Table, AlignsColumnsByCodePoints) {
  Table table({{"name"}, {"µs", Align::right}, {"note"}});
  table.add_row({"größe", "2.68", "x"});
  table.add_row({"n", "12345", ""});
  EXPECT_EQ(print(table),
            "name      µs  note\n"
            "größe   2.68  x\n"
            "n      12345\n");
}

TEST(Table, IndentsAndPadsMissingCells) {
  Table table({{"a"}, {"b"}});
  table.add_row({"1"});
  EXPECT_EQ(print(table, 0, 2), "  a  b\n  1\n");
}

TEST(Table, DropsColumnsInTheirOrderWhenNarrow) {
  Table table({{"keep"}, {"second", Align::left, 1}, {"first", Align::left, 2}});
  table.add_row({"k", "s", "f"});
  EXPECT_EQ(print(table, 19), "keep  second  first\nk     s       f\n");
  EXPECT_EQ(print(table, 18), "keep  second\nk     s\n(too narrow for: …\n");
  EXPECT_EQ(print(table, 5), "keep\nk\n(too…\n");
}

TEST(Table, KeepsControlCharactersFromTheTerminal) {
  Table table({{"name"}});
  table.add_row({"\x1b[2Jevil\n"});
  EXPECT_EQ(print(table), "name\n?[2Jevil?\n");
}

TEST(Table, KeepsC1AndBidirectionalControlsAndOtherBytesFromTheTerminal) {
  EXPECT_EQ(printable("a\xC2\x9B" "31mb"), "a?31mb");  // CSI
  EXPECT_EQ(printable("a\xC2\x9D" "0;title"), "a?0;title");  // OSC
  for (const char* const control : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202E", "\u2066", "\u2069", "\u2028"})
    EXPECT_EQ(printable(std::string("a") + control + "b"), "a?b");
  EXPECT_EQ(printable("a\x9B" "b\xE2\x80"), "a?b??");  // no UTF-8
  EXPECT_EQ(printable("é – µ … 名 \U0001F600"), "é – µ … 名 \U0001F600");
}

TEST(Truncate, CutsBetweenCodePoints) {
  EXPECT_EQ(truncate("µµµµ", 4), "µµµµ");
  EXPECT_EQ(truncate("µµµµ", 3), "µµ…");
  EXPECT_EQ(truncate("abc", 1), "…");
  EXPECT_EQ(truncate("abc", 0), "");
}

TEST(Table, ColumnsOfWhichNothingIsKnownAreLeftOut) {
  Table table({{"a"}, {"b", Align::right, 1, true}, {"c", Align::right, 2, true}});
  table.add_row({"1", std::string(kUnknown), std::string(kUnknown)});
  table.add_row({"2", std::string(kUnknown), "3"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(), "a  c\n1  –\n2  3\n");
  std::ostringstream narrow;
  table.print(narrow, 2);
  EXPECT_EQ(narrow.str(), "a\n1\n2\n(…\n") << "of the narrow table only c is missing";
}

}  // namespace
}  // namespace hone::tuner
