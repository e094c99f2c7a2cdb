#include "runtime/choose/reference.h"

#include <string>
#include <vector>

#include <hone/error.h>

#include "runtime/measure/workload.h"

namespace hone {
namespace {

/// Says what is wrong with the results of one problem on one kind of input; "" when all orders agree.
std::string disagreement(Device& device, Workload& workload, const Problem& problem, std::string_view kind,
                         const Module& reference, Stream stream) {
  const auto in_order = [&](int order) {
    return workload.outputs_of(problem, kind, [&](const Problem& called, std::span<void* const> buffers) {
      enqueue_reference(device, reference, called, order, buffers, stream);
    });
  };
  const std::vector<std::vector<std::byte>> first = in_order(0);
  for (int order = 1; order < problem.family->verifier().reference_orders(); ++order)
    if (std::string differs = problem.family->verifier().compare_orders(problem, first, in_order(order));
        !differs.empty())
      return differs;
  return "";
}

}  // namespace

void enqueue_reference(Device& device, const Module& reference, const Problem& problem, int order,
                       std::span<void* const> buffers, Stream stream) {
  LaunchList launches;
  problem.family->verifier().encode_reference(problem, order, buffers, launches);
  for (const Launch& launch : launches) device.launch(reference.kernel(launch.entry), launch, stream);
}

void require_one_result(const std::shared_ptr<Device>& device, const Problem& problem, const Module& reference,
                        Stream stream) {
  if (problem.family->verifier().reference_orders() < 2) return;
  const std::vector<Problem> problems = problem.family->verifier().order_problems(problem);
  Workload workload(device, problems.front(), stream, InputState::warm);
  int disagreeing = 0;
  for (auto small = problems.rbegin(); small != problems.rend(); ++small) {
    for (std::string_view kind : problem.family->verifier().input_kinds(*small)) {
      const std::string differs = disagreement(*device, workload, *small, kind, reference, stream);
      if (differs.empty()) continue;
      if (++disagreeing == 2) throw Error(ErrorCode::invalid_argument, differs);
      break;
    }
  }
}

void require_laws(const Problem& problem) {
  if (const std::string fault = problem.family->verifier().law_fault(problem); !fault.empty())
    throw Error(ErrorCode::invalid_argument, fault);
}

}  // namespace hone
