// Scope, Staging, Combine, Tail, MinBlocks: how work is divided, in the words that all families have in common; and the
// tables of opinions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <hone/device_facts.h>
#include <hone/policy.h>
#include <hone/problem_class.h>
#include <hone/reason.h>

namespace hone {

/// The threads that make one output together.
enum class Scope : std::int32_t {
  warp,  ///< one, some or all lanes of a warp: a further parameter says how many
  block,
  cluster,  ///< the blocks of a thread-block cluster: cluster_blocks of them
  grid,     ///< as many blocks as there are for it
};

/// How input reaches the registers.
enum class Staging : std::int32_t {
  direct,         ///< loaded by the threads that use it
  shared,         ///< through shared memory, in tiles
  shifted,        ///< rows that begin anywhere: aligned packs, of which neighbours are shifted into place
  strips,         ///< through shared memory, in strips of matrices with a short side
  phase_matched,  ///< rows that begin anywhere: aligned packs, where a thread's rows all have the same alignment
  ring,           ///< through rings in shared memory, which bulk copies fill ahead
};

/// How the results of several blocks meet.
enum class Combine : std::int32_t {
  last_block,     ///< the block that takes the last ticket combines what all have published
  second_kernel,  ///< a second launch does
  pipeline,       ///< blocks publish and later read what others have published, in one launch
  held,           ///< so do resident blocks, which hold their parts of rows in shared memory meanwhile
};

/// How the threads of a block are combined: the words of combine.cuh. With shared memory sums of 2^20 and 2^24
/// f16, f32 and i8 take 0.3 to 1.5 % less time than with shuffles, and once 0.5 % more (the best of all valid policies,
/// H100, CUDA 13.0, 2026-11-24, parameter_effects).
enum class Tail : std::int32_t {
  warp,    ///< warp shuffles
  shared,  ///< shared memory
};

/// The second argument of __launch_bounds__, blocks of an SM that the compiler leaves registers for. ptxas may
/// otherwise reuse registers to reach an occupancy step, and so wait for each of the loads that a thread should have in
/// flight.
enum class MinBlocks : std::int32_t {
  one,             ///< 1: as many registers as a block may have
  unset,           ///< none: the compiler's choice
  three_quarters,  ///< ⌊1536 ÷ threads⌋: three quarters of the threads of an SM of 2048
  one_half,        ///< ⌊1024 ÷ threads⌋: half of them
  one_quarter,     ///< ⌊512 ÷ threads⌋
};
/// The threads of an SM that have registers so; 0: not said.
constexpr std::int32_t threads_of_sm(MinBlocks min_blocks) {
  constexpr std::array<std::int32_t, 5> kThreads{1, 0, 1536, 1024, 512};
  return kThreads[static_cast<std::size_t>(min_blocks)];
}

/// The values of an enum by name. Called with some of them, the default first, it makes a categorical parameter.
template <class Value, std::size_t kCount>
struct NamedValues {
  std::string_view name;
  std::array<std::string_view, kCount> names;

  std::string_view operator[](Value value) const { return names[static_cast<std::size_t>(value)]; }

  Parameter operator()(std::initializer_list<Value> values) const {
    Parameter parameter{.name = name, .values = {}, .value_names = {}};
    for (const Value value : values) {
      parameter.values.push_back(static_cast<std::int32_t>(value));
      parameter.value_names.push_back((*this)[value]);
    }
    return parameter;
  }
};

inline constexpr NamedValues<Scope, 4> scope_parameter{"scope", {"warp", "block", "cluster", "grid"}};
inline constexpr NamedValues<Staging, 6> staging_parameter{
    "staging", {"direct", "shared", "shifted", "strips", "phase_matched", "ring"}};
inline constexpr NamedValues<Combine, 4> combine_parameter{"combine",
                                                           {"last_block", "second_kernel", "pipeline", "held"}};
inline constexpr NamedValues<Tail, 2> tail_parameter{"tail", {"warp", "shared"}};
inline constexpr NamedValues<MinBlocks, 5> min_blocks_parameter{
    "min_blocks", {"1", "unset", "1536_threads", "1024_threads", "512_threads"}};

/// The blocks of a cluster, the default first: 1 where no cluster makes an output.
inline Parameter cluster_parameter(std::vector<std::int32_t> blocks) {
  return ordinal("cluster_blocks", std::move(blocks)).only_if("scope", {Scope::cluster}).otherwise(1);
}

/// How the blocks of a grid share rows: in chunks that are read twice, or in parts that they hold.
inline Parameter chunks_parameter(std::initializer_list<Combine> values) {
  return combine_parameter(values)
      .only_if("scope", {Scope::grid})
      .otherwise(static_cast<std::int32_t>(Combine::second_kernel));
}

/// The traffic of lanes that load 16 bytes of a row each, apart from each other: half of a sector of 32 bytes. Sums of
/// rows of 16 f32 take 456.8 µs so, and 375.8 with two lanes a row (H100, CUDA 13.0, 2026-11-25); those of 16 f16,
/// which are one sector, take no longer.
inline constexpr double kHalfSectors = 1.25;

/// The traffic of runs of so many bytes apart from each other, as if each were 8 bytes longer: softmax of 256 columns
/// of 2^16 f32 in runs of 32, 128 and 256 bytes took 110, 84.0 and 82.6 µs (H100, CUDA 13.0, 2026-11-25).
inline double traffic_of_runs(std::int64_t bytes) { return 1 + 8 / static_cast<double>(bytes); }

/// The traffic of tiles side by side where rows begin anywhere: a tile's row of so many bytes shares sectors with those
/// beside it. Sums of 12289 × 4097, less 1.5 µs where a second kernel joins blocks: of f16 by rows of 112, 496 and 1008
/// bytes 42.7, 35.4 and 35.9 µs, of f32 by 240 and 504 bytes 72.5 and 67.9 (H100, CUDA 13.0, 2026-11-26). That the 74
/// and 69 narrow tiles also leave SMs idle was not told apart.
inline double traffic_of_shared_edges(std::int64_t bytes) {
  constexpr double kSharedEdgeBytes = 58;
  const double share = kSharedEdgeBytes / static_cast<double>(bytes);
  return 1 + share * share;
}

/// The traffic of lanes that come back to the same lines of a row for each of its packs, while the other rows of their
/// warps drive them out of L1. RMS norms of rows of 20 to 250 f16 and f32 take two lanes with 3, 9 and 13 packs each
/// 1.0, 2.0 and 1.5 to 2.8 times as long as the best, four with 5, 7 and 19 packs 1.1, 1.2 and 2.1, eight with 4, 10 and
/// 16 packs 1.0, 1.1 and 1.2, whatever the bytes of a pack (H100, CUDA 13.0, 2026-11-27).
inline double traffic_of_lanes(std::int64_t packs_of_lane, std::int64_t lanes) {
  constexpr std::int64_t kFreePacks = 3;
  constexpr double kTrafficOfPack = 0.27;
  const std::int64_t again = std::max<std::int64_t>(0, packs_of_lane - kFreePacks);
  return 1 + kTrafficOfPack * static_cast<double>(again) / static_cast<double>(lanes);
}

/// Returns true if threads run one after the other, so that neither registers nor loads in flight are scarce.
inline bool is_host(const DeviceFacts& facts) { return facts.kind == "host"; }

/// The subject of a prune rule: what a family derives from a typical problem and a policy, with the device.
template <class Layout>
struct PolicyView : Layout {
  const DeviceFacts& facts;

  PolicyView(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& of)
      : Layout(problem_class.typical(), policy), facts(of) {}
};

/// An opinion on which policies are not worth measuring, and what it rests on.
template <class View>
struct PruneRule {
  const char* reason;
  std::string_view evidence;  ///< where it was seen: device, toolkit, date, figure
  bool (*applies)(const View&);
};

/// Evidence of opinions that follow from how the kernels divide work, and were not measured against the alternative.
inline constexpr std::string_view kNotMeasured = "not measured";

/// For policies whose min_blocks is `kDefault` on devices without launch bounds.
template <class View, MinBlocks kDefault>
inline constexpr PruneRule<View> kNoLaunchBounds{
    "registers are not scarce on this device", "the host device has no launch bounds",
    [](const View& view) { return view.min_blocks != kDefault && is_host(view.facts); }};

/// The rules of both tables.
template <class Rule, std::size_t kFirst, std::size_t kSecond>
constexpr auto joined(const std::array<Rule, kFirst>& first, const std::array<Rule, kSecond>& second) {
  std::array<Rule, kFirst + kSecond> rules{};
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), rules.begin()));
  return rules;
}

/// The reason of the first rule that applies.
template <class View, std::size_t kCount>
Reason pruned_by(const std::array<PruneRule<View>, kCount>& rules, const View& view) {
  for (const PruneRule<View>& rule : rules)
    if (rule.applies(view)) return {ReasonCode::pruned, rule.reason};
  return {};
}

/// The reason of a family with several tables, which says which of them is for what.
template <class View>
Reason pruned_by(Reason (&rules)(const View&), const View& view) {
  return rules(view);
}

}  // namespace hone
