#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/problem_class.h>
#include <hone/session.h>

#include "runtime/dispatch/buffer_checks.h"
#include "runtime/dispatch/call_checks.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/dispatch/session_impl.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/trace/trace_range.h"

namespace hone {

struct Plan::State {
  const SessionCore* core;
  Problem planned;
  const LoadedPlan* plan;
  DeviceBuffer workspace;
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const Winner& Plan::winner() const { return state_->plan->winner; }

/// Pointers may be better aligned than planned, and a plan may be captured or not: neither makes the kernel another.
void Plan::launch(const Problem& problem, std::span<void* const> buffers, Stream stream) const {
  const Problem& planned = state_->planned;
  Problem called = problem;
  called.alignment = std::min(problem.alignment, planned.alignment);
  called.launch_context = planned.launch_context;
  const auto refuse = [&](const std::string& why) {
    refuse_call(fmt::format("a plan for {} cannot launch {}", to_string(planned), to_string(problem)), why);
  };
  if (ProblemKey(called) != ProblemKey(planned)) refuse(ProblemClass(called).difference(planned));
  if (std::any_of(problem.extents.begin(), problem.extents.end(), [](std::int64_t extent) { return extent < 0; }))
    refuse("no extent can be negative");
  const SessionCore& core = *state_->core;
  check_buffers(*core.device(), core.options(), problem, buffers, stream);
  const TraceRange traced([&] { return call_text(problem, state_->plan->winner); });
  state_->plan->loaded.enqueue(*core.device(), problem, buffers, state_->workspace.data(), stream);
}

Plan Session::make_plan(const Problem& problem) {
  auto state = std::make_unique<Plan::State>();
  state->core = &impl_->core();
  state->planned = problem;
  state->plan = impl_->resolve(problem, false).plan;
  if (state->plan->needs_workspace) state->workspace = make_workspaces(impl_->core().device(), 1);
  return Plan(std::move(state));
}

}  // namespace hone
