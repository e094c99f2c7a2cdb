#include <hone/kernel_family.h>

#include <array>
#include <bit>

#include <fmt/format.h>

#include "cache/digest.h"
#include "runtime/families/never_destroyed.h"

namespace hone {
std::span<const std::string_view> KernelFamily::extent_names() const {
  static constexpr std::array<std::string_view, 1> kNames{"n"};
  return kNames;
}

const Verifier& KernelFamily::verifier() const {
  static const auto& verifier = never_destroyed<Verifier>();
  return verifier;
}

namespace {

/// Names a field of a Problem that has no value of its type, because it was cast from elsewhere or never set; "" if all
/// have one.
std::string fault_of_fields(const Problem& problem) {
  if (!problem.family)
    return "a Problem without a family names no call; make it with reduce_problem(), softmax_problem() or the like";
  const auto fault = [&](std::string_view field, auto value, std::size_t values) {
    const auto number = static_cast<std::size_t>(value);
    return number < values ? ""
                           : fmt::format("{}: a Problem's {} has {} values, and {} is none of them",
                                         problem.family->name(), field, values, number);
  };
  std::string found = fault("operation", problem.operation, problem.family->operations().size());
  for (const std::optional<DType> dtype : {std::optional(problem.dtype), problem.accumulator, problem.result})
    if (found.empty() && dtype) found = fault("dtype, accumulator or result", *dtype, kDTypes.size());
  if (found.empty()) found = fault("numerics", problem.numerics, kNumericsNames.size());
  if (found.empty()) found = fault("nan", problem.nan, 2);
  if (found.empty()) found = fault("launch_context", problem.launch_context, kLaunchContextNames.size());
  if (found.empty() && !std::has_single_bit(problem.alignment))
    found = fmt::format("{}: a Problem's alignment is {} bytes, which is no power of two", problem.family->name(),
                        problem.alignment);
  return found;
}

}  // namespace

std::string refusal_of(const Problem& problem) {
  if (std::string fault = fault_of_fields(problem); !fault.empty()) return fault;
  const KernelFamily& family = *problem.family;
  if (std::string refusal = family.refuse(problem); !refusal.empty()) return refusal;
  if (problem.numerics == Numerics::fast || family.offers_reproducible(problem)) return "";
  return fmt::format("{} has no kernels for reproducible numerics of {} of {}; ask for fast numerics", family.name(),
                     family.operations()[problem.operation], info(problem.dtype).name);
}

std::string family_digest(const KernelFamily& family) {
  cache::Digest digest;
  digest.add("name", family.name()).add("version", std::int64_t{family.version()});
  for (const Parameter& parameter : family.space().parameters()) {
    digest.add("parameter", parameter.name);
    for (std::int32_t value : parameter.values) digest.add("value", parameter.spell(value));
  }
  for (const SourceFile& source : family.sources()) digest.add("file", source.name).add("text", source.text);
  return digest.hex();
}

}  // namespace hone
