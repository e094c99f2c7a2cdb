#include "benchmarks/accuracy/accuracy.h"

#include <gmock/gmock.h>

#include <set>

namespace hone::benchmarks {
namespace {

TEST(Accuracy, BoundIsThatOfPairwiseSummation) {
  // γ(10) = 10u / (1 − 10u)
  const long double u = 1.0L / 16777216;
  EXPECT_NEAR(static_cast<double>(pairwise_bound(1024, 3)), static_cast<double>(3 * 10 * u / (1 - 10 * u)), 1e-20);
  EXPECT_EQ(pairwise_bound(1, 3), 0);
}

TEST(Accuracy, IntegersMustBeExactAndFloatsWithinTheirBounds) {
  EXPECT_TRUE(is_accurate({.experiment = "i", .by = "Hone", .n = 9, .found = 5, .exact = 5, .bound = 0}));
  EXPECT_FALSE(is_accurate({.experiment = "i", .by = "Hone", .n = 9, .found = 5, .exact = 6, .bound = 0}));
  EXPECT_TRUE(is_accurate({.experiment = "f", .by = "Hone", .n = 9, .found = 5, .exact = 5.39L, .bound = 0.1L}));
  EXPECT_FALSE(is_accurate({.experiment = "f", .by = "Hone", .n = 9, .found = 5, .exact = 5.5L, .bound = 0.1L}));
}

/// The kernel that fills and the host's exact sum agree: n is so small that no error grows beyond its bound.
TEST(Accuracy, KernelAndHostMakeTheSameNumbers) {
  SessionOptions options;
  options.on_miss = MissPolicy::heuristic;
  Session session(Device::open("host"), options);
  const DeviceBuffer memory(session.device(), 4093 * sizeof(float));
  const std::vector<AccuracyRow> rows = measure_accuracy(session, {}, memory.data(), memory.size_bytes());
  std::set<std::string> inputs;
  for (const AccuracyRow& row : rows) {
    inputs.insert(row.experiment);
    EXPECT_TRUE(is_accurate(row)) << row.experiment << ": " << row.found << " instead of " << row.exact;
    EXPECT_NE(row.exact, 0) << row.experiment;
  }
  EXPECT_THAT(inputs, testing::IsSupersetOf({"uniform in [0, 1)", "1.23, over and over", "cancelling, 1 left over",
                                             "2^26, 1, -2^26, 0", "random i8", "random u64"}));
}

}  // namespace
}  // namespace hone::benchmarks
