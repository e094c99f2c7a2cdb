#include "runtime/choose/compiled.h"

#include <algorithm>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_spec.h>

#include "runtime/jit/cubin_loads.h"
#include "runtime/jit/cubin_resources.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

Unit with_sources(Unit unit, const KernelFamily& family) {
  const std::span<const SourceFile> sources = family.sources();
  unit.headers.assign(sources.begin(), sources.end());
  return unit;
}

/// Throws KernelSpecError unless the launches of a candidate have an argument for each parameter of the compiled
/// kernels, of its size: a launch would read what is not there.
void require_matching_arguments(const Problem& problem, const Policy& policy, const Unit& unit, const Module& module) {
  if (!module.kernel(0).parameter_bytes) return;  // a device that does not tell
  const std::vector<void*> buffers(problem.family->buffers(problem).size());
  LaunchList launches;
  problem.family->encode(problem, {policy, {.max_blocks = 1}}, buffers, nullptr, launches);
  for (const Launch& launch : launches) {
    const std::string& entry = unit.entries[static_cast<std::size_t>(launch.entry)];
    const auto& parameters = module.kernel(launch.entry).parameter_bytes;
    if (!parameters) continue;
    const auto reject = [&](const std::string& why) {
      throw KernelSpecError(
          fmt::format("the kernel {} of {} {}; the arguments must be those of the kernel, in its order", entry,
                      unit.name, why),
          "arguments", "");
    };
    if (launch.arguments.count() != static_cast<int>(parameters->size()))
      reject(fmt::format("has {} parameters, and {} arguments are described", parameters->size(),
                         launch.arguments.count()));
    for (int i = 0; i < launch.arguments.count(); ++i)
      if (const int bytes = (*parameters)[static_cast<std::size_t>(i)]; launch.arguments.bytes(i) != bytes)
        reject(fmt::format("has a parameter {} of {} bytes, and its argument is described with {}", i + 1, bytes,
                           launch.arguments.bytes(i)));
  }
}

}  // namespace

Unit unit_of(const ProblemClass& problem_class, const Policy& policy) {
  const KernelFamily& family = problem_class.family();
  Unit unit = with_sources(family.unit(problem_class, policy), family);
  if (unit.name.empty()) unit.name = to_string(problem_class) + " " + family.space().to_string(policy);
  return unit;
}

CompiledCode load_policy(Device& device, const Problem& problem, const Policy& policy, const Unit& unit,
                         std::shared_ptr<const Binary> binary, BinaryMemo* memo) {
  const WorkShape shape = problem.family->shape(problem, policy);
  CompiledCode code{.compiled = {.policy = policy}, .binary = std::move(binary)};
  {
    const TraceRange traced([&] { return "load " + unit.name; });
    if (memo) code.module = memo->load(device, *code.binary, unit.entries);
    else code.module = device.load(*code.binary, unit.entries);
  }
  require_matching_arguments(problem, policy, unit, *code.module);

  const TraceRange traced([] { return std::string("occupancy"); });
  // Every kernel of the unit must be resident; the one with the fewest blocks decides.
  CompiledPolicy& compiled = code.compiled;
  compiled.resources = code.module->kernel(0).resources;
  if (code.binary->format == "cubin" && is_whole_elf(code.binary->code)) {
    const std::string& symbol = (code.binary->entries.empty() ? unit.entries : code.binary->entries).at(0);
    compiled.thread_bytes_in_flight =
        cubin_bytes_in_flight(code.binary->code, code.binary->architecture, symbol).value_or(0);
  }
  compiled.resident_blocks =
      device.resident_blocks(code.module->kernel(0), shape.block_threads, shape.dynamic_smem_bytes);
  for (std::size_t entry = 1; entry < unit.entries.size(); ++entry) {
    const Kernel& kernel = code.module->kernel(static_cast<int>(entry));
    compiled.resources.local_bytes = std::max(compiled.resources.local_bytes, kernel.resources.local_bytes);
    if (device.resident_blocks(kernel, shape.block_threads, 0) == 0) compiled.resident_blocks = 0;
  }
  if (shape.cluster_blocks > 1 && compiled.resident_blocks > 0)
    compiled.resident_clusters = device.resident_clusters(code.module->kernel(0), shape.block_threads,
                                                          shape.dynamic_smem_bytes, shape.cluster_blocks);
  if (shape.cooperative && compiled.resident_blocks * device.usable_sms() < device.facts().sm_count)
    compiled.resident_blocks = 0;
  return code;
}

std::shared_ptr<const Module> load_reference(Device& device, const Problem& problem, BinaryMemo& memo) {
  const Unit unit = with_sources(problem.family->verifier().reference_unit(problem), *problem.family);
  const CompileOutcome outcome = memo.compile(device, std::span(&unit, 1)).front();
  if (!outcome.binary) throw Error(ErrorCode::compile_failed, outcome.error);
  return memo.load(device, *outcome.binary, unit.entries);
}

}  // namespace hone
