// The reduce_custom family: a reduction by the caller's expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/custom_reduction.h>

#include "runtime/families/reduce/reduction_family.h"

namespace hone {

/// Its one operation has the name of the expressions; Problem::accumulator and Problem::result are always set. Results are
/// verified with plain kernels of the same expressions (serial.cuh), on positive numbers.
class CustomFamily final : public ReductionFamily, Verifier {
 public:
  /// The family of expressions; made when first asked for, and then kept. Thread-safe. Throws as CustomReduction does.
  static const CustomFamily& of(const ReduceExpressions& expressions);

  std::string refuse(const Problem& problem) const override;
  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override { return *this; }

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;

  /// Besides the size and the next smaller one, those that take fewer blocks, down to one with a single element.
  std::vector<Problem> verified_problems(const Problem& problem) const override;

  bool has_reference_kernel() const override { return true; }
  Unit reference_unit(const Problem& problem) const override;
  void encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                        LaunchList& launches) const override;
  std::string compare(const Problem& problem, const Candidate& candidate, ArrayBytes expected,
                      ArrayBytes outputs) const override;

  int reference_orders() const override;
  std::vector<Problem> order_problems(const Problem& problem) const override;
  std::string compare_orders(const Problem& problem, ArrayBytes first, ArrayBytes other) const override;

 protected:
  /// The header with the expressions, and the type in it that the kernels take.
  OperationSource operation(const Problem& problem) const override;
  std::size_t partial_bytes(const Problem& problem) const override;

 private:
  struct Difference {
    double first, other, allowed;
  };

  /// The difference of two results; nullopt where the rounding of `chain` combinations, or the caller, allows for it.
  std::optional<Difference> difference(const Problem& problem, std::int64_t chain, const std::vector<std::byte>& first,
                                       const std::vector<std::byte>& other) const;

  explicit CustomFamily(const ReduceExpressions& expressions);

  /// Two elements for which `combine` gives other bits when they are exchanged, with both results; "" if none were
  /// found, or none could be tried. Compiles for the host device at the first call for each accumulator.
  std::string exchanged_elements(const Problem& problem) const;

  ReduceExpressions expressions_;
  std::string_view operation_;
  mutable std::mutex exchanged_mutex_;
  mutable std::map<DType, std::string> exchanged_;  ///< by accumulator
};

}  // namespace hone
