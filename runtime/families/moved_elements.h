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

/// Buffers {in, out}. Elements are moved by their size, whatever they mean. Random ones are verified bit by bit: all of
/// a small array, both ends and pieces in between of a large one.
class MovedFamily : public BuiltInFamily, protected Verifier {
 public:
  using BuiltInFamily::BuiltInFamily;

  std::int64_t bytes_moved(const Problem& problem) const final;
  std::vector<BufferSpec> buffers(const Problem& problem) const final;
  const Verifier& verifier() const final { return *this; }

  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const final;
  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const final;

 protected:
  std::string fault_of(const Problem& problem) const override;

 private:
  /// The element of the input that belongs at an element of the output; negative: a gap, which may hold anything.
  virtual std::int64_t source_of(const Problem& problem, std::int64_t element) const = 0;
  virtual bool is_in_place(const Problem&) const { return false; }
};

}  // namespace hone::moved
