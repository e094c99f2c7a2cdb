// The families of segmented reductions: each segment of an array to one value, or two.
#pragma once

#include <string>
#include <vector>

#include <hone/reduce_spec.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/reduce/reduce_verifier.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of segmented reductions, in the words of segmented_reduce.cuh: a grid divides segments and elements
/// evenly (MergedSegments); 1, 4 or 16 lanes take a segment from a tile in shared memory (StagedSegments); a warp or a block
/// takes a segment (DirectSegments).
struct SegmentedPolicy {
  Scope scope = Scope::grid;              ///< of a segment
  Combine combine = Combine::last_block;  ///< of a grid
  std::int32_t threads_per_segment = 0;   ///< of a warp; 0: more than a warp
  std::int32_t block_threads = 256;
  std::int32_t thread_bytes = 16;  ///< that a thread loads at once
  MinBlocks min_blocks = MinBlocks::unset;

  bool is_merged() const { return scope == Scope::grid; }
  bool is_in_tiles() const { return scope == Scope::warp && threads_per_segment < 32; }
  bool joins_in_second_kernel() const { return is_merged() && combine == Combine::second_kernel; }

  /// Threads that take a segment together; of MergedSegments, all of the block.
  int group_threads() const { return scope == Scope::warp ? threads_per_segment : block_threads; }

  static const ParameterSpace& space();
};

/// Extents {segments, elements, 1}.
class SegmentedReduceFamily final : public BuiltInFamily, LinesVerifier {
 public:
  /// `offsets`: i32 or i64.
  explicit SegmentedReduceFamily(DType offsets);

  std::string refuse(const Problem& problem) const override;
  bool offers_reproducible(const Problem& problem) const override {
    return reduce_spec_of(problem).is_reproducible();
  }
  std::string arithmetic(const Problem& problem) const override;
  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  std::string refuse_contents(const Problem& problem, int buffer, std::span<const std::byte> contents) const override;
  const Verifier& verifier() const override { return *this; }

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::vector<Problem> verified_problems(const Problem& problem) const override;

 private:
  std::vector<ElementRange> verified_lines(const Problem& problem) const override;
  std::function<Line(std::int64_t)> lines(const Problem& problem, ArrayBytes patterns) const override;
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;

  DType offsets_;
};

}  // namespace hone
