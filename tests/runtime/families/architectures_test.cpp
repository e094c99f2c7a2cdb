// A sample of every family's units compiles for every GPU architecture that the toolkit and Hone know.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include <hone/copy.h>
#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>
#include <hone/softmax.h>
#include <hone/transpose.h>
#include <hone/tuned_reduce.h>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

/// A device of an architecture, as far as the choice of policies asks.
DeviceFacts facts_of(int compute_capability) {
  DeviceFacts facts = h100_facts();
  facts.compute_capability = compute_capability;
  facts.architecture = fmt::format("sm_{}", compute_capability);
  if (compute_capability < 90) {
    facts.max_cluster_blocks = 0;
    facts.has_dependent_launch = false;
    facts.smem_bytes_per_block_optin = compute_capability == 75 ? 65536 : 101376;
  }
  return facts;
}

std::vector<Problem> problems() {
  std::vector<Problem> problems{
      reduce_problem(ReduceOp::mean_variance, DType::f16, 1 << 20, 2),
      reduce_rows_problem({.op = ReduceOp::argmax}, {.rows = 4096, .columns = 4096}, 16),
      reduce_columns_problem({.op = ReduceOp::logsumexp, .dtype = DType::bf16}, {.reduced = 4096, .inner = 5000}, 2),
      segmented_reduce_problem({}, DType::i32, 1 << 16, 1 << 22),
      softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(4096, 8192), 16),
      softmax_problem({}, SoftmaxShape::axis(2, 512, 4096), 16),
      transpose_problem({.element_bytes = 2, .rows = 4097, .columns = 4099}, 2, false),
      copy_problem({.element_bytes = 4, .rows = 1000, .columns = 1001, .in_pitch = 1003}, 4)};
  for (const DTypeInfo& dtype : kDTypes) problems.push_back(reduce_problem(ReduceOp::sum, dtype.dtype, 1 << 24));
  return problems;
}

class Architectures : public testing::TestWithParam<int> {};

TEST_P(Architectures, ASampleOfEveryFamilyCompiles) {
  const DeviceFacts facts = facts_of(GetParam());
  for (const Problem& problem : problems()) {
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

INSTANTIATE_TEST_SUITE_P(Gpus, Architectures, testing::Values(75, 80, 86, 89, 90, 100, 120));

}  // namespace
}  // namespace hone
