// CustomVerifier: reductions by the caller's expressions against a plain kernel of the same expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/verifier.h>

namespace hone {

class CustomFamily;

/// Verifies with the kernels of serial.cuh, on positive numbers. `family` must outlive it.
class CustomVerifier final : public Verifier {
 public:
  explicit CustomVerifier(const CustomFamily& family) : family_(family) {}

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;

  /// Besides the size and the next smaller one, those that take fewer blocks, down to one with a single element.
  std::vector<Problem> verified_problems(const Problem& problem) const override;

  /// Results are compared with those of a plain kernel; see compare().
  bool has_reference_kernel() const override { return true; }
  Unit reference_unit(const Problem& problem) const override;
  void encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                        LaunchList& launches) const override;
  std::string compare(const Problem& problem, const Candidate& candidate,
                      std::span<const std::vector<std::byte>> expected,
                      std::span<const std::vector<std::byte>> outputs) const override;

  int reference_orders() const override;
  std::vector<Problem> order_problems(const Problem& problem) const override;
  std::string compare_orders(const Problem& problem, std::span<const std::vector<std::byte>> first,
                             std::span<const std::vector<std::byte>> other) const override;

 private:
  struct Difference {
    double first, other, allowed;
  };

  std::optional<Difference> difference(const Problem& problem, std::int64_t chain, const std::vector<std::byte>& first,
                                       const std::vector<std::byte>& other) const;

  const CustomFamily& family_;
};

}  // namespace hone
