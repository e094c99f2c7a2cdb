// check_policies(): a tunable kernel under the host device's checks, in every policy.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/host_check.h>
#include <hone/policy.h>
#include <hone/problem.h>

#include "tuner/text/reasons.h"

namespace hone::tuner {

/// The findings of the checks in one policy.
struct PolicyCheck {
  std::string policy;  ///< "block_threads=256 unroll=4"
  std::string large;   ///< the call of HostCheck::large; "": none of that size is taken
  HostCheckReport report;
  bool is_compiled = true;  ///< false: `report` is the compiler's
};

/// The checks of policies, in the order of the family's space.
struct PolicyChecks {
  std::vector<PolicyCheck> run;
  std::int64_t not_run = 0;  ///< after one that the deadline stopped
  std::string not_looked_at;  ///< why no policy was compiled for a GPU; "" where all that ran were
  std::vector<ReasonCount> invalid;  ///< why others are not valid on the host device, and how many for each reason
};

/// A check of one policy: `run` makes its launches on random inputs, the first kind of the family's verifier. Without
/// HostCheck::large and HostCheck::deadline, which check_policies() adds.
HostCheck policy_check(const Problem& problem, const Policy& policy, const std::vector<HostOrder>& orders);

/// Told before each policy is checked: which it is, how many were checked before it, and how many are valid.
using CheckObserver = std::function<void(std::string_view policy, std::size_t before, std::size_t all)>;

/// The valid policies of the problem's family on the host device, in the order of its space, each checked in a process
/// of its own: what check_on_host() sees, also with more than 2^31 elements where the family takes them, and results
/// that differ from the family's reference. Where nothing is found, NVRTC compiles the policy for `architecture`, if
/// there is one: the host's compiler accepts more. One that `deadline`, HostCheck::deadline, stops is the last: of a
/// loop that never ends, every other policy would take as long. Throws Error(unsupported) for an architecture that
/// NVRTC does not know, and what check_in_child() throws; a unit that does not compile in one policy is a report of
/// that one.
PolicyChecks check_policies(const Problem& problem, const std::vector<HostOrder>& orders,
                            std::chrono::milliseconds deadline, std::string_view architecture,
                            const CheckObserver& observer = {});

}  // namespace hone::tuner
