#include <hone/sdk/gpu_kernel.h>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>

#include "runtime/jit/cubin_resources.h"

namespace hone {

Resources gpu_resources(const Unit& unit, std::string_view architecture) {
  const Binary cubin = compile_for_gpu(unit, architecture);
  if (const auto resources = cubin_resources(cubin.code, cubin.entries.at(0))) return *resources;
  throw Error(ErrorCode::not_found,
              fmt::format("'{}' compiled, but holds no kernel '{}'", unit.name, unit.entries.at(0)));
}

}  // namespace hone
