// SpecVerifier: results of a KernelSpec against its reference.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_spec.h>
#include <hone/verifier.h>

namespace hone {

class SpecFamily;

/// `family` must outlive it.
class SpecVerifier final : public Verifier {
 public:
  explicit SpecVerifier(const SpecFamily& family) : family_(family) {}

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;

  /// The size itself, sizes that are smaller by one in each extent, and one that no tile divides.
  std::vector<Problem> verified_problems(const Problem& problem) const override;

  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const override;

  bool has_reference_kernel() const override;
  Unit reference_unit(const Problem& problem) const override;
  void encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                        LaunchList& launches) const override;
  std::string compare(const Problem& problem, const Candidate& candidate, ArrayBytes expected,
                      ArrayBytes outputs) const override;

 private:
  const SpecFamily& family_;
};

}  // namespace hone
