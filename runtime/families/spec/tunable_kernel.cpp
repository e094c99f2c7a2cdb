#include <hone/tunable_kernel.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>

#include "runtime/families/never_destroyed.h"
#include "runtime/families/spec/spec_family.h"

namespace hone {

KernelReference KernelReference::kernel(std::string source) {
  KernelReference reference;
  reference.kind_ = Kind::kernel;
  reference.source_ = std::move(source);
  return reference;
}

KernelReference KernelReference::function(std::vector<Parameter> parameters, Function function) {
  KernelReference reference;
  reference.kind_ = Kind::function;
  reference.parameters_ = std::move(parameters);
  reference.function_ = std::move(function);
  return reference;
}

KernelExtents::KernelExtents(std::span<const std::int64_t> extents) : count_(extents.size()) {
  if (extents.size() < 1 || extents.size() > values_.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a kernel was called with {} extents; there may be one to three", extents.size()));
  std::copy(extents.begin(), extents.end(), values_.begin());
}

TunableKernel::TunableKernel(const KernelSpec& spec) {
  // Sessions and winners refer to families for as long as they live, and nothing tells when the last of them is gone.
  static std::mutex mutex;
  static auto& families = never_destroyed<std::deque<SpecFamily>>();
  const std::scoped_lock lock(mutex);
  family_ = &families.emplace_back(spec);
}

const KernelFamily& TunableKernel::family() const { return *family_; }

const KernelSpec& TunableKernel::spec() const { return family_->spec(); }

std::int64_t TunableKernel::index_limit(const Problem& problem, std::size_t argument) const {
  return family_->index_bound(problem, argument);
}

Problem TunableKernel::problem(const KernelExtents& extents, std::uint32_t alignment) const {
  if (extents.count() != family_->extent_names().size())
    throw Error(ErrorCode::invalid_argument, fmt::format("the kernel '{}' has {} extents ({}), and was called with {}",
                                                         family_->name(), family_->extent_names().size(),
                                                         fmt::join(family_->extent_names(), " × "), extents.count()));
  return {.family = family_, .dtype = family_->parsed().dtype, .alignment = alignment, .extents = extents.values()};
}

}  // namespace hone
