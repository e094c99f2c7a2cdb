// MovedFamily: what the families have in common that only move elements, and their exact verification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/families/built_in_family.h"

namespace hone::moved {

/// Elements of one size are all moved alike: the unsigned integer of `bytes`, 1, 2, 4 or 8.
DType dtype_of_size(std::size_t bytes);

/// Parts of a large array that are worth checking: both ends and pieces in between, spread at random; all of a small
/// one.
std::vector<ElementRange> spread_parts(std::int64_t elements);

class MovedFamily;

/// Verifies random elements bit by bit: all of a small array, both ends and pieces in between of a large one.
class MovedVerifier final : public Verifier {
 public:
  /// `family` must outlive it.
  explicit MovedVerifier(const MovedFamily& family) : family_(family) {}

  std::vector<Problem> verified_problems(const Problem& problem) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  const MovedFamily& family_;
};

/// Buffers {in, out}. Elements are moved by their size, whatever they mean.
class MovedFamily : public BuiltInFamily {
 public:
  using BuiltInFamily::BuiltInFamily;

  std::string refuse(const Problem& problem) const final;
  std::int64_t bytes_moved(const Problem& problem) const final;
  std::vector<BufferSpec> buffers(const Problem& problem) const final;
  const Verifier& verifier() const final { return verifier_; }

  /// The input (0) or the output (1). On the hit path: must not allocate.
  virtual Rows rows(const Problem& problem, int buffer) const = 0;

  /// The element of the input that belongs at an element of the output; negative: a gap, which may hold anything.
  virtual std::int64_t source_of(const Problem& problem, std::int64_t element) const = 0;

  /// As Verifier::verified_problems().
  virtual std::vector<Problem> verified_problems(const Problem& problem) const = 0;

 protected:
  /// Says what else is wrong with a problem whose rows are in order; "" if nothing is.
  virtual std::string refuse_layout(const Problem& problem) const = 0;
  virtual bool is_in_place(const Problem&) const { return false; }

 private:
  MovedVerifier verifier_{*this};
};

}  // namespace hone::moved
