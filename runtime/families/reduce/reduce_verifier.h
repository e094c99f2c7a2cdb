// ReduceVerifier: reductions against the reference in higher precision.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/reduce_spec.h>
#include <hone/verifier.h>

#include "runtime/families/reduce/reduction_family.h"

namespace hone {

/// The families of many reductions of one array, by operations of kReduceOps, whose results lie side by side in one
/// output. Some of them are verified.
class LinesFamily : public BuiltInFamily, protected Verifier {
 public:
  explicit LinesFamily(FamilyTraits traits) : BuiltInFamily(with_reduce_ops(std::move(traits))) {}

  bool offers_reproducible(const Problem& problem) const final { return reduce_spec_of(problem).is_reproducible(); }
  std::string arithmetic(const Problem& problem) const final { return reduce_arithmetic(reduce_spec_of(problem)); }
  const Verifier& verifier() const final { return *this; }

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const final;
  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const final;

 protected:
  /// The elements of one result, in an array that repeats a pattern.
  struct Line {
    std::int64_t elements = 0, first = 0, stride = 1;
  };

  std::string fault_of(const Problem& problem) const override;

  /// The reductions to verify, ascending and apart from each other, and the elements of each.
  virtual std::vector<ElementRange> verified_lines(const Problem& problem) const = 0;
  virtual std::function<Line(std::int64_t)> lines(const Problem& problem, ArrayBytes patterns) const = 0;

  /// The most combinations that one element goes through.
  virtual std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const = 0;
};

/// One of the operations that a fused problem is made of, as a reduction of its own.
ReduceSpec fused_member(const Problem& problem, ReduceOp op);

/// Verifies all outputs: those of a ReduceOp, or one of each fused operation, on the inputs of all of them. `family`
/// must outlive it.
class ReduceVerifier final : public Verifier {
 public:
  explicit ReduceVerifier(const ReductionFamily& family, std::vector<ReduceOp> fused = {})
      : family_(family), fused_(std::move(fused)) {}

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const override;

 private:
  /// The reductions whose results are verified, one for each output array.
  std::vector<ReduceSpec> members(const Problem& problem) const;

  const ReductionFamily& family_;
  std::vector<ReduceOp> fused_;
};

}  // namespace hone
