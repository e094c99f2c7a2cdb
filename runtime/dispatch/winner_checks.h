// Winners apart from any session: how a trial becomes one, what it is called, and whether a device can launch it.
#pragma once

#include <string>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/problem.h>
#include <hone/problem_class.h>

namespace hone {

/// The same problem, called in another context.
inline Problem in_context(Problem problem, LaunchContext context) {
  problem.launch_context = context;
  return problem;
}

/// The winner that a trial on `problem` makes for the whole class of `problem`. An untuned one has no times.
Winner make_winner(const Problem& problem, const Trial& trial, bool tuned);

/// "call reduce sum f32 n=1000: block_threads=256 … in at most 132 blocks": the name of a range of TraceRange.
std::string call_text(const Problem& problem, const Winner& winner);

/// Why a stored candidate is not valid on a device, or does not fit a workspace of kWorkspaceBytes; empty where it may
/// be launched. The answer is that of the class, so that a winner serves all members or none.
Reason launch_fault(const DeviceFacts& facts, const ProblemClass& problem_class, const Candidate& candidate);
bool may_launch(const DeviceFacts& facts, const ProblemClass& problem_class, const Candidate& candidate);

}  // namespace hone
