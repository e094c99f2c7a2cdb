// From compiled policies to an ordered list of candidates; what cannot take part carries its reason.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/kernel_family.h>

#include "runtime/search/model.h"

namespace hone {

/// The geometries of a policy of which `resident_blocks` fit an SM: a single block or cluster for policies that want
/// one; else the same number of blocks for every SM, in one wave (1, 2, 4, … resident blocks) and in 2 to 4 waves; and
/// in 8, and a block for each tile, where blocks are independent and do not load ahead. Clusters that wait for others
/// are one wave at most. A wave has `resident_clusters` if that is not 0: an SM that no cluster has room for has no
/// block.
/// Where threads run one after the other (ModelConstants::block_share_bytes): 1, 2, 4, … waves until a block's share is
/// well within the cache, and an odd number of blocks, since strides of a power of two would meet in few sets of it.
std::vector<Geometry> geometries(const DeviceFacts& facts, const WorkShape& shape, int resident_blocks,
                                 std::int64_t resident_clusters = 0);

/// A policy that may be compiled, with the best prediction that its occupancy could allow.
struct RankedPolicy {
  Policy policy;
  Geometry geometry = {};  ///< of that prediction
  Prediction prediction = {};
};

/// Pruning leaves out what is not worth measuring, by the family's opinion or by the occupancy model's.
enum class Pruning { on, off };

/// The policies that are valid for the problem's class, most promising first. Registers are not known before compiling;
/// the ranking assumes the least of them.
struct PolicyRanking {
  std::vector<RankedPolicy> policies;
  std::vector<Trial> rejected;  ///< one for each reason, with the number of policies that it rules out
  std::size_t valid = 0;  ///< policies that are valid, pruned ones included
};
PolicyRanking rank_policies(const DeviceFacts& facts, const Problem& problem, Pruning pruning = Pruning::on);

/// The model's first choice is the best by their compiled code of so many policies, the first of the ranking.
inline constexpr int kMostFirstChoices = 4;

/// True if another policy should be compiled for the model's first choice: after compiling, the best takes
/// `compiled_us`, and the next of the ranking promises to take less than that by more than the model can tell.
bool may_be_better(const RankedPolicy& next, double compiled_us);

/// The same of some policies of the space alone.
PolicyRanking rank_policies(const DeviceFacts& facts, const Problem& problem, std::span<const Policy> policies,
                            Pruning pruning);

/// A policy after compiling.
struct CompiledPolicy {
  Policy policy = {};
  Resources resources = {};
  int resident_blocks = 0;  ///< per SM, from the occupancy query
  std::int64_t resident_clusters = 0;  ///< of the device, likewise; 0: no driver was asked

  /// The bytes in flight of a thread by its compiled code, see cubin_bytes_in_flight(). 0: the code does not tell.
  int thread_bytes_in_flight = 0;
};

/// The shape of a compiled policy: as the family has it, but with no more bytes in flight than the compiled code has.
WorkShape shape_of(const Problem& problem, const CompiledPolicy& compiled);

/// Candidates to measure, best prediction first, and the rejected ones. A candidate is rejected when no block of it is
/// resident, when it needs more workspace than there is, or when a smaller grid already covers all of the work; pruned
/// when it spills, or cannot have the bytes in flight that memory needs though the work would provide them.
struct CandidateList {
  std::vector<Trial> candidates;
  std::vector<Trial> rejected;
};
CandidateList list_candidates(const DeviceFacts& facts, const Problem& problem,
                              std::span<const CompiledPolicy> policies, std::size_t workspace_bytes,
                              Pruning pruning = Pruning::on);

}  // namespace hone
