// The block that a rank makes of its part of a sequence, from the definition of the canonical tree.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/families/combine_ranks/shard_layout.h"
#include "runtime/families/reduce/canonical_tree.h"

namespace hone::canonical {

/// Elements offset … offset + n − 1 of a sequence. `a` and `b` begin with the first of them.
struct Shard {
  const ReduceSpec& spec;
  const ShardLayout& layout;
  Sequence a, b;
  std::int64_t offset = 0, n = 0;

  /// Writes what the block of row `row` of `rows` has of the shard.
  void write(std::span<std::byte> block, std::int64_t row) const;

  /// Where a block differs from that; "" if it does not. NaNs are equal.
  std::string compare(std::span<const std::byte> block, std::int64_t row) const;

 private:
  /// Calls visit(where, bytes) for each part of the block, in bytes from its beginning.
  template <class Visit>
  void for_each_part(std::int64_t row, const Visit& visit) const;
  Sequence behind(Sequence sequence, std::int64_t elements) const;
};

}  // namespace hone::canonical
