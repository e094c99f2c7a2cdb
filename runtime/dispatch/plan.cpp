#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/problem_class.h>
#include <hone/session.h>

#include "runtime/choose/choose.h"
#include "runtime/dispatch/buffer_checks.h"
#include "runtime/dispatch/call_checks.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/dispatch/session_impl.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/trace/trace_range.h"

namespace hone {

struct Plan::State {
  Session::Impl* session;
  Problem planned;
  std::atomic<const LoadedPlan*> plan;  ///< another one once the device has refused it
  DeviceBuffer workspace;
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const Winner& Plan::winner() const { return state_->plan.load()->winner; }

/// Pointers may be better aligned than planned, and a plan may be captured or not: neither makes the kernel another.
void Plan::launch(const Problem& problem, std::span<void* const> buffers, Stream stream) const {
  if (!problem.family) require_accepted(problem);
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
  const SessionCore& core = state_->session->core();
  Device& device = *core.device();
  check_buffers(device, core.options(), problem, buffers, stream);
  const auto enqueue = [&](const LoadedPlan& plan) {
    check_count(problem, plan.buffers, buffers.size());
    const TraceRange traced([&] { return call_text(problem, plan.winner); });
    plan.loaded.enqueue(device, problem, buffers, state_->workspace.data(), stream);
  };
  const LoadedPlan& plan = *state_->plan.load();
  try {
    enqueue(plan);
  } catch (const NotResident& refused) {
    const bool capturing = device.stream_state(stream).capturing;
    const LoadedPlan* const other = state_->session->replace_refused(planned, plan, refused, capturing).plan;
    state_->plan = other;
    enqueue(*other);
  }
}

Plan Session::make_plan(const Problem& problem) {
  auto state = std::make_unique<Plan::State>();
  state->session = impl_.get();
  state->planned = problem;
  const LoadedPlan& plan = *impl_->resolve(problem, false).plan;
  state->plan = &plan;
  // A policy that serves in place of a refused one finds a workspace, too.
  if (plan.needs_workspace || problem.family->shape(problem, plan.winner.candidate.policy).cooperative)
    state->workspace = make_workspaces(impl_->core().device(), 1);
  return Plan(std::move(state));
}

}  // namespace hone
