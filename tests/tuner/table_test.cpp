#include "tuner/table.h"

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

TEST(Truncate, CutsBetweenCodePoints) {
  EXPECT_EQ(truncate("µµµµ", 4), "µµµµ");
  EXPECT_EQ(truncate("µµµµ", 3), "µµ…");
  EXPECT_EQ(truncate("abc", 1), "…");
  EXPECT_EQ(truncate("abc", 0), "");
}

}  // namespace
}  // namespace hone::tuner
