#include "runtime/choose/choice_check.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/own_stream.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/choose/reference.h"
#include "runtime/choose/result_checks.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"

namespace hone {
namespace {

/// The checks of a small problem that runs the same code; the problem itself comes first.
std::vector<ResultCheck> small_checks(const DeviceFacts& facts, const Problem& problem, const Policy& policy) {
  const Unit unit = problem.family->unit(problem, policy);
  std::vector<ResultCheck> checks = result_checks(small_problem(facts, problem, policy), policy, unit);
  std::erase_if(checks, [&](const ResultCheck& check) {
    return !check.problem.family->is_valid(check.problem, policy, facts).empty();
  });
  return checks;
}

/// Waits for what is enqueued, however the check ends: its memory may still be in use.
struct Waiting {
  Device& device;
  Stream stream;
  ~Waiting() {
    try {
      device.synchronize(stream);
    } catch (...) {
      // The device has failed: nothing uses the memory any more.
    }
  }
};

std::string first_fault(const std::shared_ptr<Device>& device, const Problem& problem,
                        const LoadedCandidate& loaded, const Module* reference) {
  const std::vector<ResultCheck> checks = small_checks(device->facts(), problem, loaded.candidate.policy);
  if (checks.empty()) return "";
  const OwnStream stream(*device);
  Workload workload(device, checks.front().problem, stream.get(), InputState::warm);
  const bool needs_workspace = std::any_of(checks.begin(), checks.end(), [&](const ResultCheck& check) {
    return check.problem.family->workspace_bytes(check.problem, loaded.candidate) > 0;
  });
  const Workspaces workspaces(device, needs_workspace ? kWorkspaceBytes : 0, stream.get());
  const Waiting waiting{*device, stream.get()};
  if (reference) {
    require_one_result(device, problem, *reference, stream.get());
    require_laws(problem);
  }
  const auto run = [&](const Problem& called, std::span<void* const> buffers) {
    loaded.enqueue(*device, called, buffers, workspaces.of_turn(0), stream.get());
  };
  Workload::Run run_reference;
  if (reference)
    run_reference = [&](const Problem& called, std::span<void* const> buffers) {
      enqueue_reference(*device, *reference, called, 0, buffers, stream.get());
    };
  for (const ResultCheck& check : checks) {
    const std::string fault = workload.verify(check.problem, loaded.candidate, check.kind, run, run_reference);
    if (!fault.empty()) return fmt::format("{} on {} input: {}", to_string(check.problem), check.kind, fault);
  }
  return "";
}

}  // namespace

std::string fault_of_choice(const std::shared_ptr<Device>& device, const Problem& problem, const Candidate& candidate,
                            const std::shared_ptr<const Module>& module, BinaryMemo& memo) {
  std::shared_ptr<const Module> reference;
  if (problem.family->verifier().has_reference_kernel()) reference = load_reference(*device, problem, memo);
  try {
    return first_fault(device, problem, {candidate, module}, reference.get());
  } catch (const NotResident&) {
    throw;
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::unsupported:
      case ErrorCode::out_of_memory:
        return "";
      case ErrorCode::invalid_argument:
      case ErrorCode::device_lost:
        throw;
      default:
        return error.what();
    }
  }
}

}  // namespace hone
