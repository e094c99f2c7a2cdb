#include "cache/maintenance/summary.h"

#include "cache/maintenance/prune.h"
#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

using CacheSummary = CacheMaintenance;

TEST_F(CacheSummary, CountsWhatThereIs) {
  for (int number = 0; number < 5; ++number) put(file_, numbered(number, 1000));
  sql(file_, "DELETE FROM binary WHERE digest = (SELECT binary FROM winner WHERE operation = 'operation 0')");
  prune(file_, {.limit_bytes = 123'456'789});
  const Summary summary = summarize(file_);
  EXPECT_TRUE(summary.exists);
  EXPECT_EQ(summary.schema_version, 9);
  EXPECT_EQ(static_cast<std::uintmax_t>(summary.file_bytes), std::filesystem::file_size(file_));
  EXPECT_EQ(summary.used_bytes, summary.file_bytes);
  EXPECT_EQ(summary.limit_bytes, 123'456'789);
  EXPECT_EQ(summary.devices, 1);
  EXPECT_EQ(summary.toolchains, 1);
  EXPECT_EQ(summary.winners, 5);
  EXPECT_EQ(summary.untuned_winners, 3);
  EXPECT_EQ(summary.without_code, 1);
  EXPECT_EQ(summary.binaries, 4);
  EXPECT_EQ(summary.binary_bytes, 4000);
  EXPECT_EQ(summary.tunings, 2);
  EXPECT_EQ(summary.trials, 4);
}

TEST_F(CacheSummary, OfNothingAndOfAnEmptyFile) {
  EXPECT_FALSE(summarize(file_).exists);
  write_text(file_, "");
  const Summary summary = summarize(file_);
  EXPECT_TRUE(summary.exists);
  EXPECT_EQ(summary.schema_version, 0);
  EXPECT_EQ(summary.winners, 0);
}

TEST_F(CacheSummary, OfAnOldFile) {
  make_fixture(file_, 1);
  const Summary summary = summarize(file_);
  EXPECT_EQ(summary.schema_version, 1);
  EXPECT_EQ(summary.winners, 4);
  EXPECT_EQ(summary.limit_bytes, 0);
}

}  // namespace
}  // namespace hone::cache
