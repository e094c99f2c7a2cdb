#include "benchmarks/sweep/cells.h"

#include <gmock/gmock.h>

#include <hone/error.h>
#include <hone/tuned_reduce.h>

#include "tests/support/names.h"

namespace hone::benchmarks {
namespace {

using test::Names;

using testing::ElementsAre;

TEST(CellSizes, AreNumbersPowersAndRanges) {
  EXPECT_THAT(parse_sizes("1000"), ElementsAre(1000));
  EXPECT_THAT(parse_sizes("2^4,2^4+1,2^4-3"), ElementsAre(16, 17, 13));
  EXPECT_THAT(parse_sizes("2^2..2^5"), ElementsAre(4, 8, 16, 32));
  EXPECT_THAT(parse_sizes("2^8..2^13/2"), ElementsAre(256, 1024, 4096));
  EXPECT_THAT(parse_sizes("2^33"), ElementsAre(std::int64_t{1} << 33));
  EXPECT_THAT(parse_sizes(""), testing::IsEmpty());
}

TEST(CellSizes, ThatAreNoneAreRefused) {
  for (const char* text : {"0", "x", "2^", "2^41", "2^-1", "2^3..5", "1000x", "2^3..2^5/0", "2^2-9", "2^3+", ",5"})
    EXPECT_THROW(parse_sizes(text), Error) << text;
}

TEST(Cells, ByDefaultCoverEveryPairBothContextsAndOddSizes) {
  const std::vector<Cell> cells = choose_cells(reduce_family(), {});
  const auto count = [&](auto holds) { return std::count_if(cells.begin(), cells.end(), holds); };
  for (std::size_t operation = 0; operation < reduce_family().operations().size(); ++operation)
    for (const DTypeInfo& dtype : kDTypes) {
      Cell pair{.operation = static_cast<std::uint8_t>(operation), .dtype = dtype.dtype, .n = 1};
      const bool is_accepted = reduce_family().refuse(problem_of(pair, 0)).empty();
      EXPECT_EQ(count([&](const Cell& c) { return c.operation == operation && c.dtype == dtype.dtype; }) > 0,
                is_accepted)
          << reduce_family().operations()[operation] << ' ' << dtype.name;
    }
  EXPECT_GT(count([](const Cell& c) { return c.n % 2 == 1; }), 0);
  EXPECT_GT(count([](const Cell& c) { return c.offsets.size() == 2; }), 0);
  EXPECT_EQ(count([](const Cell& c) { return c.setting.context == LaunchContext::stream; }),
            count([](const Cell& c) { return c.setting.context == LaunchContext::graph; }));
}

TEST(Cells, BeginWithTheSumOfFloats) {
  const Cell first = choose_cells(reduce_family(), {}).front();
  EXPECT_EQ(reduce_family().operations()[first.operation], "sum");
  EXPECT_EQ(first.dtype, DType::f32);
}

TEST(Cells, AreThoseThatWereSelected) {
  CellSelection selection;
  selection.operations = {"max"};
  selection.dtypes = {"i32", "f64"};
  selection.sizes = {5, 7};
  selection.settings = {{LaunchContext::graph}};
  selection.offsets = {1, 7};
  const std::vector<Cell> cells = choose_cells(reduce_family(), selection);
  ASSERT_EQ(cells.size(), 4u);
  for (const Cell& cell : cells) {
    EXPECT_THAT(cell.offsets, ElementsAre(1, 7));
    EXPECT_EQ(problem_of(cell, 1).launch_context, LaunchContext::graph);
    EXPECT_EQ(problem_of(cell, 7).alignment, info(cell.dtype).size_bytes);
  }
}

TEST(Cells, OfUnknownNamesAreRefusedWithTheKnownOnes) {
  CellSelection selection;
  selection.dtypes = {"f33"};
  try {
    choose_cells(reduce_family(), selection);
    FAIL() << "f33 was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Names("f33", "bf16"));
  }
}

}  // namespace
}  // namespace hone::benchmarks
