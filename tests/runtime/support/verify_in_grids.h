// verify_in_grids(): a policy, launched directly in several grids on every kind of input. expect_policies_right()
// compiles policies for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"

namespace hone {

/// Returns "" if `policy`, whose code is `module`, is right on each problem, else the first fault. On a GPU, every kind
/// of input meets every grid. On the host device, where each thread is a fiber, kinds and grids take turns until each
/// was run for the problem: kinds try the arithmetic of elements, grids the division of the work. A cooperative grid
/// has a block on each SM instead.
inline std::string verify_in_grids(Device& device, Workload& workload, const Policy& policy,
                                   const std::shared_ptr<const Module>& module, const std::vector<Problem>& problems,
                                   std::vector<std::int64_t> grids, void* workspace) {
  if (problems.front().family->shape(problems.front(), policy).cooperative) grids = {device.facts().sm_count};
  const bool is_host = device.facts().kind == "host";
  for (std::size_t p = 0; p < problems.size(); ++p) {
    const Problem& problem = problems[p];
    const std::span<const std::string_view> kinds = problem.family->verifier().input_kinds(problem);
    const std::size_t runs = is_host ? std::max(kinds.size(), grids.size()) : kinds.size() * grids.size();
    for (std::size_t run = 0; run < runs; ++run) {
      const std::string_view kind = kinds[run % kinds.size()];
      const std::int64_t max_blocks = grids[(is_host ? run + p : run / kinds.size()) % grids.size()];
      const LoadedCandidate loaded{{policy, {max_blocks}}, module};
      const std::string fault = workload.verify(
          problem, loaded.candidate, kind, [&](const Problem& called, std::span<void* const> buffers) {
            loaded.enqueue(device, called, buffers, workspace, nullptr);
          });
      if (!fault.empty())
        return fmt::format("{} {} {} × {}: {}", to_string(problem), kind, max_blocks,
                           problem.family->space().to_string(policy), fault);
    }
  }
  return "";
}

/// Compiles policies of a problem on all cores, and expects each to be right on all that winners are verified on.
inline void expect_policies_right(const std::shared_ptr<Device>& device, const Problem& problem,
                                  const std::vector<Policy>& policies, const std::vector<std::int64_t>& grids) {
  std::vector<Unit> units;
  for (const Policy& policy : policies) units.push_back(unit_of(problem, policy));
  const std::vector<CompileOutcome> outcomes = BinaryMemo().compile(*device, units);
  Workload workload(device, problem, nullptr);
  const DeviceBuffer workspace = make_workspaces(device, 1);
  for (std::size_t i = 0; i < policies.size(); ++i) {
    ASSERT_TRUE(outcomes[i].binary) << outcomes[i].error;
    const CompiledCode code = load_policy(*device, problem, policies[i], units[i], outcomes[i].binary);
    EXPECT_EQ(verify_in_grids(*device, workload, policies[i], code.module,
                              problem.family->verifier().verified_problems(problem), grids, workspace.data()),
              "");
  }
}

}  // namespace hone
