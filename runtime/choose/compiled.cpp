#include "runtime/choose/compiled.h"

#include <algorithm>

namespace hone {

Unit unit_of(const Problem& problem, const Variant& variant) {
  Unit unit = problem.family->unit(problem, variant);
  const std::span<const SourceFile> sources = problem.family->sources();
  unit.headers.assign(sources.begin(), sources.end());
  return unit;
}

CompiledCode load_variant(Device& device, const Problem& problem, const Variant& variant, const Unit& unit,
                          std::shared_ptr<const Binary> binary) {
  const WorkShape shape = problem.family->shape(problem, variant);
  CompiledCode code{.compiled = {.variant = variant}, .binary = std::move(binary)};
  code.module = device.load(*code.binary, unit.entries);

  // Every kernel of the unit must be resident; the one with the fewest blocks decides.
  CompiledVariant& compiled = code.compiled;
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

}  // namespace hone
