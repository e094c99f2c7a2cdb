#include <hone/kernel_family.h>

#include <array>

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

std::string refusal_of(const Problem& problem) {
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
