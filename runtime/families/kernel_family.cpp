#include <hone/kernel_family.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <hone/error.h>

#include "cache/digest.h"

namespace hone {
namespace {

[[noreturn]] void miss_method(const KernelFamily& family, std::string_view method) {
  throw Error(ErrorCode::unsupported, fmt::format("the kernel family {} does not implement {}(), so its results cannot "
                                                  "be verified", family.name(), method));
}

}  // namespace

std::span<const std::string_view> KernelFamily::extent_names() const {
  static constexpr std::array<std::string_view, 1> kNames{"n"};
  return kNames;
}

std::size_t KernelFamily::workspace_bytes(const ProblemClass&, const Candidate&) const { return 0; }

std::string KernelFamily::prune(const ProblemClass&, const Policy&, const DeviceFacts&) const { return ""; }

std::vector<Problem> KernelFamily::verified_problems(const Problem& problem) const {
  Problem smaller = problem;
  smaller.extents[0] = std::max<std::int64_t>(0, problem.extents[0] - 1);
  return {problem, smaller};
}

std::vector<ElementRange> KernelFamily::verified_parts(const Problem& problem, int buffer) const {
  return {{.first = 0, .count = buffers(problem)[static_cast<std::size_t>(buffer)].elements}};
}

std::string KernelFamily::refuse_contents(const Problem&, int, std::span<const std::byte>) const { return ""; }

std::string KernelFamily::verify(const Problem&, const Candidate&, std::span<const std::vector<std::byte>>,
                                 std::span<const std::vector<std::byte>>) const {
  miss_method(*this, "verify");
}

Unit KernelFamily::reference_unit(const Problem&) const { miss_method(*this, "reference_unit"); }

void KernelFamily::encode_reference(const Problem&, int, std::span<void* const>, LaunchList&) const {
  miss_method(*this, "encode_reference");
}

std::string KernelFamily::compare(const Problem&, const Candidate&, std::span<const std::vector<std::byte>>,
                                  std::span<const std::vector<std::byte>>) const {
  miss_method(*this, "compare");
}

std::vector<Problem> KernelFamily::order_problems(const Problem&) const { miss_method(*this, "order_problems"); }

std::string KernelFamily::compare_orders(const Problem&, std::span<const std::vector<std::byte>>,
                                         std::span<const std::vector<std::byte>>) const {
  miss_method(*this, "compare_orders");
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
