// The family of a KernelSpec: what the specification does not say is derived from it here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_family.h>
#include <hone/kernel_spec.h>

#include "runtime/families/spec/parsed_spec.h"
#include "runtime/families/spec/spec_verifier.h"

namespace hone {

constexpr std::int64_t kMostBlocksAside = 65535;  ///< of a grid, along y and z

class SpecFamily final : public KernelFamily {
 public:
  /// Throws as TunableKernel does.
  explicit SpecFamily(const KernelSpec& spec) : parsed_(spec) {}

  const ParsedSpec& parsed() const { return parsed_; }
  const KernelSpec& spec() const { return parsed_.spec; }

  std::string_view name() const override { return parsed_.spec.name; }
  int version() const override { return parsed_.version; }
  const ParameterSpace& space() const override { return parsed_.space; }
  std::span<const std::string_view> operations() const override;
  std::span<const std::string_view> extent_names() const override { return parsed_.extent_names; }
  std::span<const std::string_view> scalar_names() const override { return parsed_.scalar_names; }
  std::span<const SourceFile> sources() const override { return parsed_.headers; }

  std::string refuse(const Problem& problem) const override;
  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass&, const Policy& policy) const override { return parsed_.unit_of(policy); }
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;
  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override { return verifier_; }

  std::int64_t elements(const Problem& problem, std::size_t argument) const;

  /// A scalar's value in a call, or an extent's, which may depend on the policy.
  double number(const Problem& problem, const Policy& policy, std::size_t argument) const;

  /// The bound of the elements of an array of indices; 0 where there is none.
  std::int64_t index_bound(const Problem& problem, std::size_t argument) const;

  /// The kernel's arguments in order.
  void push_arguments(const Problem& problem, const Policy& policy, std::span<void* const> buffers,
                      Arguments& arguments) const;

 private:
  ParsedSpec parsed_;
  SpecVerifier verifier_{*this};
};

}  // namespace hone
