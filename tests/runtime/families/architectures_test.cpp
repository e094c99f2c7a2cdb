// A sample of every family's units compiles for every GPU architecture that the toolkit and Hone know;
// scripts/architectures compiles all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <hone/error.h>
#include <hone/reduce_spec.h>
#include <hone/sdk/gpu_compiler.h>

#include "runtime/choose/compiled.h"
#include "runtime/families/combine_ranks/normalize_rows.h"
#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/combine_ranks/shard_layout.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/every_family.h"
#include "tests/support/share.h"

namespace hone {
namespace {

std::vector<Problem> problems() {
  std::vector<Problem> problems = sample_problems();
  for (const DTypeInfo& dtype : kDTypes) problems.push_back(reduce_problem(ReduceOp::sum, dtype.dtype, 1 << 24));
  for (const ReduceOpInfo& op : kReduceOps) problems.push_back(combine_ranks_problem({.op = op.op}, 8, 1));
  for (const ReduceOp op : {ReduceOp::mean_variance, ReduceOp::logsumexp, ReduceOp::dot}) {
    const ReduceSpec spec{.op = op, .numerics = Numerics::reproducible};
    problems.push_back(reduce_shard_problem(spec, {.rows = 1, .columns = 1 << 20}, 0, {}));
    problems.push_back(combine_shards_problem(spec, 8, 1, {}));
  }
  problems.push_back(softmax_shard_problem({.dtype = DType::f16}, {.rows = 100, .columns = 4096}, 0, {}));
  for (const ReduceOp op : {ReduceOp::argmin, ReduceOp::mean})
    problems.push_back(record_partial_problem({.op = op}, {.rows = 1, .columns = 1000}));
  for (const DType dtype : {DType::f16, DType::f32})
    for (const auto make : {&normalize_rows_problem, &canonical_normalize_problem})
      problems.push_back(make({.dtype = dtype}, false, SoftmaxShape::rows(100, 4096), kMaxAlignment));
  return problems;
}

class Architectures : public testing::TestWithParam<int> {};

TEST_P(Architectures, ASampleOfEveryFamilyCompiles) {
  const DeviceFacts facts = facts_of_architecture(GetParam());
  // Every fourth problem; the next architectures take the rest.
  auto turn = std::find(kComputeCapabilities.begin(), kComputeCapabilities.end(), GetParam()) -
              kComputeCapabilities.begin();
  for (const Problem& problem : problems()) {
    if (!test::in_share(static_cast<std::size_t>(turn++), 4)) continue;
    const std::vector<Policy> policies = allowed_policies(problem, facts);
    ASSERT_FALSE(policies.empty()) << to_string(problem);
    const std::size_t chosen = static_cast<std::size_t>(GetParam()) * 7 % policies.size();  // others for each
    try {
      EXPECT_FALSE(compile_for_gpu(unit_of(problem, policies[chosen]), facts.architecture).code.empty());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) GTEST_SKIP() << error.what();
      ADD_FAILURE() << problem.family->space().to_string(policies[chosen]) << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Architectures, testing::ValuesIn(kComputeCapabilities));

}  // namespace
}  // namespace hone
