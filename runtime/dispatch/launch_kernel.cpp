#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/session.h>
#include <hone/tunable_kernel.h>

#include "runtime/dispatch/call_checks.h"
#include "runtime/dispatch/session_impl.h"
#include "runtime/families/spec/spec_family.h"

namespace hone {
namespace {

std::string list_arguments(const KernelSpec& spec) {
  std::string names;
  for (const KernelArgument& argument : spec.arguments)
    if (argument.kind != KernelArgument::Kind::extent) names.append(names.empty() ? "" : ", ").append(argument.name);
  return names;
}

/// No array that the kernel writes shares a byte with another. It may be one that is only read, as a whole: the kernel
/// alone knows whether it works in place.
void check_apart(const Call& call, const SpecFamily& family, std::span<void* const> buffers) {
  const ParsedSpec& parsed = family.parsed();
  const ParsedSpec::Variables known = parsed.variables(parsed.default_policy, call.problem.extents);
  const auto rows_of = [&](std::size_t i) {
    return side_by_side(buffers[parsed.buffer_of[i]], parsed.elements[i].evaluate(known),
                        parsed.spec.arguments[i].dtype);
  };
  for (const std::size_t written : parsed.written_arguments) {
    const ArrayRows output = rows_of(written);
    for (std::size_t i = 0; i < parsed.spec.arguments.size(); ++i) {
      const KernelArgument& argument = parsed.spec.arguments[i];
      if (!argument.is_array() || i == written) continue;
      const ArrayRows other = rows_of(i);
      const bool is_input = argument.kind == KernelArgument::Kind::in;
      if (is_input && other.first == output.first && other.row_bytes == output.row_bytes) continue;
      call.check_apart(argument.name, other, parsed.spec.arguments[written].name, output, is_input);
    }
  }
}

}  // namespace

Choice Session::launch(const TunableKernel& kernel, std::initializer_list<KernelValue> values,
                       const KernelExtents& extents, Stream stream) {
  return launch(kernel, std::span(values.begin(), values.size()), extents, stream);
}

Choice Session::launch(const TunableKernel& kernel, std::span<const KernelValue> values, const KernelExtents& extents,
                       Stream stream) {
  const KernelSpec& spec = kernel.spec();
  const auto& family = static_cast<const SpecFamily&>(kernel.family());
  Problem problem = kernel.problem(extents);
  const Call call{"launch", problem};
  std::array<void*, Arguments::kCapacity> buffers{};
  std::size_t arrays = 0, scalars = 0;
  const bool is_empty = std::ranges::find(problem.extents, 0) != problem.extents.end();
  auto value = values.begin();
  for (std::size_t i = 0; i < spec.arguments.size(); ++i) {
    const KernelArgument& argument = spec.arguments[i];
    if (argument.kind == KernelArgument::Kind::extent) continue;
    if (value == values.end() || value->is_array() != argument.is_array())
      call.refuse(fmt::format("'{}' is {}; pass one value for each of {}", argument.name,
                              value == values.end() ? "missing"
                              : argument.is_array() ? "an array, and a number was passed"
                                                    : "a number, and an array was passed",
                              list_arguments(spec)));
    if (!argument.is_array()) {
      problem.scalars[scalars++] = value->number();
    } else {
      if (!is_empty) call.check_array(argument.name, value->array(), argument.dtype, true, spec.alignment);
      buffers[family.parsed().buffer_of[i]] = value->array();
      problem.alignment = std::min(problem.alignment, alignment_of(value->array()));
      ++arrays;
    }
    ++value;
  }
  if (value != values.end())
    call.refuse(fmt::format("{} values were passed; pass one for each of {}", values.size(), list_arguments(spec)));
  call.check_problem();
  if (is_empty) return {};
  check_apart(call, family, std::span(buffers).first(arrays));
  return impl_->launch(problem, std::span(buffers).first(arrays), stream);
}

}  // namespace hone
