// A sample of every family's units compiles for every GPU architecture that the toolkit and Hone know.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/runtime/support/problems_of_families.h"

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

class Architectures : public testing::TestWithParam<int> {};

TEST_P(Architectures, ASampleOfEveryFamilyCompiles) {
  const DeviceFacts facts = facts_of(GetParam());
  for (const Problem& problem : problems_of_every_family({{4096, 8192}, {4097, 4099}}, {2, 16})) {
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
