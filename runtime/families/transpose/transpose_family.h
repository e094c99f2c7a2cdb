// The transpose family: every parameter is a choice of transpose.cuh or transpose_shifted.cuh.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_family.h>
#include <hone/transpose_spec.h>

#include "runtime/families/work_division.h"

namespace hone {

/// The policies of transposes.
struct TransposePolicy {
  enum class Vector : std::int32_t { widest, narrow };       ///< that the alignment allows, or a fourth of it
  enum class Aspect : std::int32_t { square, tall, wide };   ///< of the tiles
  enum class Order : std::int32_t { rows, columns, groups }; ///< in which tiles follow each other

  Staging staging = Staging::shared;  ///< shifted: by transpose_shifted.cuh
  Vector vector = Vector::widest;
  std::int32_t tile_kib = 16;
  Aspect aspect = Aspect::square;
  std::int32_t block_threads = 256;
  Order order = Order::rows;

  static const ParameterSpace& space();
};

/// The tile that a policy has for a class: it depends on which sides of the matrices are short.
struct TransposeTile {
  TransposePolicy policy;
  bool in_place;
  bool shifted;  ///< by transpose_shifted.cuh
  int element_bytes;
  int vector_bytes;
  int tile_rows, tile_columns;  ///< of the input
  std::string_view invalid = "", pruned = "";  ///< what is_valid() and prune() say of it, before its loads are counted

  TransposeTile(const ProblemClass& problem_class, const Policy& of);

  int block_threads() const { return policy.block_threads; }

  /// Input rows before a tile's first one that its block loads as well, so that its pieces of output rows start at
  /// sectors.
  int step_rows() const { return shifted ? 32 / element_bytes : 0; }
  std::int64_t tile_bytes() const { return std::int64_t{element_bytes} * tile_rows * tile_columns; }
  int loads_per_thread() const;  ///< of vectors, before it uses any
  /// Of one block: with the room that keeps lanes apart, of two tiles where they change places.
  std::int64_t smem_bytes() const;
};

/// What the operations differ in: matrices that are their own output, and elements that are pairs of 64 bits.
inline bool is_in_place(const Problem& problem) { return problem.operation % 2 == 1; }
inline bool is_of_pairs(const Problem& problem) { return problem.operation >= 2; }

/// Extents {batch, rows, columns}; buffers {in, out}.
class TransposeFamily final : public KernelFamily {
 public:
  std::string_view name() const override { return "transpose"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 3> kExtentNames{"batch", "rows", "columns"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return TransposePolicy::space(); }
  std::span<const std::string_view> operations() const override;
  std::span<const SourceFile> sources() const override;

  std::string refuse(const Problem& problem) const override;
  std::string is_valid(const ProblemClass& problem_class, const Policy& policy,
                       const DeviceFacts& facts) const override;
  std::string prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override;
};

}  // namespace hone
