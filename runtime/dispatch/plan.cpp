#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/session.h>

#include "runtime/dispatch/session_impl.h"

namespace hone {

struct Plan::State {
  Session::Impl* session;
  Problem planned;
  const LoadedPlan* plan;
  DeviceBuffer workspace;
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const Winner& Plan::winner() const { return state_->plan->winner; }

void Plan::launch(const Problem& problem, std::span<void* const> buffers, Stream stream) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a plan for {} cannot launch {}: {}", to_string(state_->planned), to_string(problem), why));
  };
  const Problem& planned = state_->planned;
  if (problem.family != planned.family || problem.operation != planned.operation)
    refuse("it is another operation");
  const auto require_same = [&](std::string_view what, auto of_call, auto of_plan, auto spell) {
    if (of_call != of_plan) refuse(fmt::format("its {} is {}, the plan's {}", what, spell(of_call), spell(of_plan)));
  };
  const auto dtype_name = [](std::optional<DType> dtype) { return dtype ? info(*dtype).name : "the family's choice"; };
  require_same("dtype", std::optional(problem.dtype), std::optional(planned.dtype), dtype_name);
  require_same("accumulator", problem.accumulator, planned.accumulator, dtype_name);
  require_same("result", problem.result, planned.result, dtype_name);
  require_same("NaN policy", problem.nan, planned.nan,
               [](NanPolicy nan) { return nan == NanPolicy::ignore ? "ignore" : "propagate"; });
  if (problem.numerics != planned.numerics) refuse("its numerics differ");
  if (problem.alignment < planned.alignment)
    refuse(fmt::format("the pointers are aligned to {} bytes only", problem.alignment));
  for (std::size_t i = 0; i < problem.extents.size(); ++i) {
    const SizeRange& range = winner().sizes[i];
    if (problem.extents[i] < range.first || problem.extents[i] > range.last)
      refuse(fmt::format("extent {} is outside of {} … {}", problem.extents[i], range.first, range.last));
  }
  state_->session->check_buffers(problem, buffers, stream);
  state_->plan->loaded.enqueue(*state_->session->device(), problem, buffers, state_->workspace.data(), stream);
}

Plan Session::make_plan(const Problem& problem) {
  auto state = std::make_unique<Plan::State>();
  state->session = impl_.get();
  state->planned = problem;
  state->plan = impl_->resolve(problem, false).plan;
  if (state->plan->needs_workspace) state->workspace = zeroed_buffer(impl_->device(), kWorkspaceBytes);
  return Plan(std::move(state));
}

}  // namespace hone
