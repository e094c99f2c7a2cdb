#include "runtime/dispatch/problem_key.h"

#include <gtest/gtest.h>

#include <set>

#include <hone/tuned_reduce.h>

#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

ProblemKey key_of(std::int64_t n, ReduceOp op = ReduceOp::sum, DType dtype = DType::f32, std::uint32_t alignment = 16) {
  return ProblemKey(reduce_problem(op, dtype, n, alignment));
}

TEST(ProblemKey, IsEqualForSizesOfOneClass) {
  EXPECT_EQ(key_of(0), key_of(279));
  EXPECT_EQ(key_of(1 << 20), key_of((1 << 20) + 12345));
  EXPECT_NE(key_of(279), key_of(280));
  EXPECT_NE(key_of(1 << 20), key_of(3 << 19));
  EXPECT_NE(key_of(3 << 19), key_of(1 << 21));
}

TEST(ProblemKey, DiffersForWhateverElseDiffers) {
  EXPECT_NE(key_of(9), key_of(9, ReduceOp::min));
  EXPECT_NE(key_of(9), key_of(9, ReduceOp::sum, DType::f64));
  EXPECT_NE(key_of(9), key_of(9, ReduceOp::sum, DType::f32, 4));
  Problem in_graph = reduce_problem(ReduceOp::sum, DType::f32, 9);
  in_graph.launch_context = LaunchContext::graph;
  EXPECT_NE(key_of(9), ProblemKey(in_graph));
  const TotalFamily one, other;
  EXPECT_NE(ProblemKey(one.problem(9)), ProblemKey(other.problem(9)));
}

TEST(ProblemKey, PitchesAndScalarsArePartsOfTheCallAlone) {
  Problem problem = reduce_problem(ReduceOp::sum, DType::f32, 9);
  problem.pitches = {10, 11};
  problem.scalars = {0.5, -2};
  EXPECT_EQ(key_of(9), ProblemKey(problem));
}

TEST(ProblemKey, EachExtentHasItsPlace) {
  Problem problem = reduce_problem(ReduceOp::sum, DType::f32, 1000);
  std::set<std::uint64_t> keys;
  for (Extents extents : {Extents{1000, 1, 1}, {1, 1000, 1}, {1, 1, 1000}, {1000, 1000, 1}, {1, 1000, 1000}}) {
    problem.extents = extents;
    EXPECT_TRUE(keys.insert(ProblemKey(problem).packed).second);
  }
}

TEST(ProblemKey, AllReductionsHaveDistinctKeys) {
  std::set<std::uint64_t> keys;
  std::size_t count = 0;
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max})
    for (const DTypeInfo& dtype : kDTypes)
      for (std::uint32_t alignment : {1u, 16u})
        for (int k = kSmallestSizeClass; k < 48; ++k, ++count)
          keys.insert(key_of(size_range(k).last, op, dtype.dtype, alignment).bits());
  EXPECT_EQ(keys.size(), count);
}

}  // namespace
}  // namespace hone
