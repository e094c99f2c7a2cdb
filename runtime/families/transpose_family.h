// The transpose family: every parameter is a choice of transpose.cuh or transpose_shifted.cuh.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_family.h>
#include <hone/transpose.h>

namespace hone {

/// A Policy of a transpose on a problem, decoded: the tile depends on which sides of the matrices are short.
struct TransposePolicy {
  enum class Order { rows, columns, groups };

  int vector_bytes;
  int tile_rows, tile_columns;  ///< of the input
  int block_threads;
  Order order;
  bool in_place;
  bool shifted;  ///< by transpose_shifted.cuh
  int element_bytes;
  std::string fault;  ///< why it is no policy of the problem; "" if it is

  TransposePolicy(const Problem& problem, const Policy& policy);

  /// Input rows before a tile's first one that its block loads as well, so that its pieces of output rows start at
  /// sectors.
  int step_rows() const { return shifted ? 32 / element_bytes : 0; }
  std::int64_t tile_bytes() const { return std::int64_t{element_bytes} * tile_rows * tile_columns; }
  int loads_per_thread() const;  ///< of vectors, before it uses any
  /// Of one block: with the room that keeps lanes apart, of two tiles where they change places.
  std::int64_t smem_bytes() const;
};

/// Extents {batch, rows, columns}; buffers {in, out}.
class TransposeFamily final : public KernelFamily {
 public:
  TransposeFamily();

  std::string_view name() const override { return "transpose"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 3> kExtentNames{"batch", "rows", "columns"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return space_; }
  std::span<const std::string_view> operations() const override;
  std::span<const SourceFile> sources() const override;

  std::string refuse(const Problem& problem) const override;
  std::string reject(const Problem& problem, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const Problem& problem, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  std::size_t workspace_bytes(const Problem&, const Candidate&) const override { return 0; }
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::vector<Problem> verified_problems(const Problem& problem) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  ParameterSpace space_;
};

}  // namespace hone
