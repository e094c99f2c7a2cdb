#include "tuner/text/report.h"

#include <gtest/gtest.h>

namespace hone::tuner {
namespace {

TEST(ShortPolicy, ShortensKnownParameters) {
  EXPECT_EQ(short_policy("block_threads=256 vector_bytes=16 unroll=4 tail=warp finish=last_block min_blocks=1"),
            "256t 16B x4 warp last_block");
  EXPECT_EQ(short_policy("block_threads=256 unroll=4 finish=last_block min_blocks=unset"), "256t x4 last_block unset");
}

TEST(ShortPolicy, KeepsForeignParameters) {
  EXPECT_EQ(short_policy("tile=32 order=row_major"), "tile=32 row_major");
  EXPECT_EQ(short_policy(""), "");
  EXPECT_EQ(short_policy("  odd  "), "odd");
}

// Worked examples of the textbooks: 1536 threads and 8 blocks an SM.
TEST(Occupancy, IsResidentThreadsOverTheLimit) {
  EXPECT_DOUBLE_EQ(occupancy(8, 64, 1536), 1.0 / 3);
  EXPECT_DOUBLE_EQ(occupancy(6, 256, 1536), 1.0);
  EXPECT_DOUBLE_EQ(occupancy(1, 1024, 1536), 2.0 / 3);
  EXPECT_DOUBLE_EQ(occupancy(1, 256, 0), 0);
}

TEST(Bandwidth, IsBytesOverTime) {
  EXPECT_DOUBLE_EQ(bandwidth_gbps(1'000'000, 1000), 1);
  EXPECT_DOUBLE_EQ(bandwidth_gbps(1'000'000, 0), 0);
}

TEST(Texts, ABlockForEveryTileIsNoNumber) {
  EXPECT_EQ(blocks_cell(132), "132");
  EXPECT_EQ(blocks_text(132), "at most 132 blocks");
  EXPECT_EQ(blocks_text(1), "at most 1 block");
  EXPECT_EQ(blocks_cell(Geometry::kMostBlocks / 132 * 132), "1/tile");
  EXPECT_EQ(blocks_text(Geometry::kMostBlocks / 132 * 132), "a block for every tile");
}

TEST(Texts, ShowWhatIsUnknownAsUnknown) {
  EXPECT_EQ(blocks_cell(0), kUnknown);
  EXPECT_EQ(gbps_text(0), kUnknown);
  EXPECT_EQ(gbps_text(3027.4), "3027");
  EXPECT_EQ(gbps_text(1.534), "1.53");
  EXPECT_EQ(gbps_text(0.00412), "0.0041");
  EXPECT_EQ(percent_text(0.914), "91 %");
  EXPECT_EQ(percent_text(0.0123), "1.2 %");
  EXPECT_EQ(share_text(3027, 3352), "90 %");
  EXPECT_EQ(share_text(3027, 0), kUnknown);
  EXPECT_EQ(us_text(0), kUnknown);
  EXPECT_EQ(gap_text(0), "+0.0 %");
  EXPECT_EQ(gap_text(-0.031), "-3.1 %");
  EXPECT_EQ(gap_text(0.314), "+31 %");
  EXPECT_EQ(range_text(725, 1448), "725..1448");
  EXPECT_EQ(range_text(1, 1), "1");
}

}  // namespace
}  // namespace hone::tuner
