// The reduce family: all elements of an array to one value, or two.
#pragma once

#include <hone/kernel_family.h>
#include <hone/tuned_reduce.h>

namespace hone {

/// A Variant of the reduce family, decoded.
///
/// What is not a parameter never won by more than its noise, or never lost (H100 and H200, CUDA 13.0, 2026-11): loads of
/// 16 bytes, shuffles rather than a tree in shared memory, no cache hints, and launches that overlap.
struct ReduceVariant {
  enum class Finish { one_block, cluster_8, cluster_16, last_block, second_kernel };

  int block_threads;
  int unroll;
  Finish finish;

  explicit ReduceVariant(const Variant& variant);

  /// 1 where the blocks form no cluster.
  int cluster_blocks() const;
};

/// Extents {n, 1, 1}; operations as ReduceOp. Launches the templates of reduce.cuh.
class ReduceFamily final : public KernelFamily {
 public:
  ReduceFamily();

  std::string_view name() const override { return "reduce"; }
  int version() const override { return 2; }
  const ParameterSpace& space() const override { return space_; }
  std::span<const std::string_view> operations() const override;
  std::span<const SourceFile> sources() const override;

  std::string refuse(const Problem& problem) const override;
  std::string reject(const Problem& problem, const Variant& variant, const DeviceFacts& facts) const override;
  Unit unit(const Problem& problem, const Variant& variant) const override;
  WorkShape shape(const Problem& problem, const Variant& variant) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  std::size_t workspace_bytes(const Problem& problem, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  ParameterSpace space_;
};

}  // namespace hone
