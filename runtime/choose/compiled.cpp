#include "runtime/choose/compiled.h"

#include <algorithm>

#include <hone/error.h>

#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

Unit with_sources(Unit unit, const KernelFamily& family) {
  const std::span<const SourceFile> sources = family.sources();
  unit.headers.assign(sources.begin(), sources.end());
  return unit;
}

}  // namespace

Unit unit_of(const ProblemClass& problem_class, const Policy& policy) {
  const KernelFamily& family = problem_class.family();
  Unit unit = with_sources(family.unit(problem_class, policy), family);
  if (unit.name.empty()) unit.name = to_string(problem_class) + " " + family.space().to_string(policy);
  return unit;
}

CompiledCode load_policy(Device& device, const Problem& problem, const Policy& policy, const Unit& unit,
                          std::shared_ptr<const Binary> binary) {
  const WorkShape shape = problem.family->shape(problem, policy);
  CompiledCode code{.compiled = {.policy = policy}, .binary = std::move(binary)};
  {
    const TraceRange traced([&] { return "load " + unit.name; });
    code.module = device.load(*code.binary, unit.entries);
  }

  // Every kernel of the unit must be resident; the one with the fewest blocks decides.
  CompiledPolicy& compiled = code.compiled;
  compiled.resources = code.module->kernel(0).resources;
  compiled.resident_blocks =
      device.resident_blocks(code.module->kernel(0), shape.block_threads, shape.dynamic_smem_bytes);
  for (std::size_t entry = 1; entry < unit.entries.size(); ++entry) {
    const Kernel& kernel = code.module->kernel(static_cast<int>(entry));
    compiled.resources.local_bytes = std::max(compiled.resources.local_bytes, kernel.resources.local_bytes);
    if (device.resident_blocks(kernel, shape.block_threads, 0) == 0) compiled.resident_blocks = 0;
  }
  return code;
}

std::shared_ptr<const Module> load_reference(Device& device, const Problem& problem, BinaryMemo& memo) {
  const Unit unit = with_sources(problem.family->verifier().reference_unit(problem), *problem.family);
  const CompileOutcome outcome = memo.compile(device, std::span(&unit, 1)).front();
  if (!outcome.binary) throw Error(ErrorCode::compile_failed, outcome.error);
  return device.load(*outcome.binary, unit.entries);
}

}  // namespace hone
