// Combine: one State a thread becomes one State an output, on every level from lanes to the blocks of the grid.
//
//   threads   kThreads neighbouring threads of a block share an output: lanes of a warp, or the whole block (Tail)
//   cluster   kClusterBlocks blocks of a thread-block cluster share it and exchange their States through DSMEM
//   grid      all blocks publish a partial each in the workspace, and one of them or a second kernel combines these
//
// A level that is not asked for costs nothing. Combine owns its shared memory and its barriers: callers need none
// between two calls. The order of combination is fixed, so floating-point results do not change from run to run.
//
// Op has State, identity() and combine(); of_lanes<kLanes>() for to_first() and in_all_lanes<kLanes>() for to_all(), as
// in reduction.cuh. It may be an object: the scale of a softmax is known at run time only.
#pragma once

#include "states.cuh"

namespace hone {

/// How the threads of a block are combined.
enum class Tail {
  warp,    ///< by shuffles: one barrier
  shared,  ///< in shared memory: two barriers and no shuffle, for devices where a shuffle costs as much as a barrier
};

/// The way in which the results of blocks meet.
enum class Grid {
  none,        ///< each is an output
  last_block,  ///< each is a partial; the block with the last ticket combines them
  publish,     ///< each is a partial, for a second kernel
};

/// kThreads is a power of two. kRepeats: a block makes several outputs, one after the other; to_all() and clusters are
/// double buffered then, with one barrier an output at each level. kMayBeFewer: blocks may be launched with fewer warps,
/// and clusters with fewer blocks; they call to_all() only. A kernel has one object of a type.
template <class Op, unsigned kThreads, unsigned kClusterBlocks = 1, Grid kGrid = Grid::none, bool kRepeats = false,
          Tail kTail = Tail::warp, Exchange kExchange = Exchange::barriers, bool kMayBeFewer = false>
class Combine {
 public:
  using State = typename Op::State;

  /// Every thread makes one before it reads or writes global memory: this calls pdl_release_then_wait().
  explicit __device__ Combine(const Op& op = {}) : op_(op) {
    if constexpr (kClusterBlocks > 1) Cluster::start();
    pdl_release_then_wait();
  }

  /// The number of the calling thread among those that share its output.
  static __device__ unsigned rank() {
    if constexpr (kClusterBlocks > 1) return rank_in_cluster() * kThreads + threadIdx.x;
    else if constexpr (kThreads > kWarpThreads) return threadIdx.x;  // they are the block
    else return threadIdx.x % kThreads;
  }

  /// The number of the calling thread's cluster, or of its block, and how many of them the grid has.
  static __device__ unsigned group() {
    if constexpr (kClusterBlocks > 1) return number_of_cluster();
    else return blockIdx.x;
  }
  static __device__ unsigned groups() {
    if constexpr (kClusterBlocks > 1) return clusters_of_grid();
    else return gridDim.x;
  }

  /// Combines the States of all threads that share an output; returns true to the one thread that has the result. Every
  /// thread of the block calls it. The block's partial is number `partial` of the workspace, if the grid has partials.
  __device__ bool to_first(State& state, void* workspace = nullptr, unsigned partial = 0) {
    bool is_first = in_block(state);
    if constexpr (kClusterBlocks > 1) is_first = in_cluster(state);
    if constexpr (kGrid != Grid::none) {
      State* const partials = partials_in<State>(workspace);
      if (is_first) partials[partial] = state;
      if constexpr (kGrid == Grid::publish) return false;
      if (!is_last_block(workspace)) return false;
      state = combine_published<Op>(partials, threadIdx.x, gridDim.x, kThreads, 1, op_);
      is_first = in_block(state);
    }
    if constexpr (kRepeats && kClusterBlocks == 1 && kWarps > 1) __syncthreads();
    ++outputs_;
    return is_first;
  }

  /// The same in a block or a cluster, if the lanes of each warp all have the State of all of them.
  __device__ bool to_first_of_lanes(State& state) {
    static_assert(kGrid == Grid::none && kTail == Tail::warp && !kRepeats);
    bool is_first = of_warps(state);
    if constexpr (kClusterBlocks > 1) is_first = in_cluster(state);
    return is_first;
  }

  /// The same as to_first(); all threads that share the output get the result.
  __device__ State to_all(State state) { return to_all_of_lanes(op_.template in_all_lanes<kLanes>(state)); }

  /// The same if the lanes that share an output all have the State of all of them.
  __device__ State to_all_of_lanes(State state) {
    static_assert(kGrid == Grid::none && kTail == Tail::warp);
    if constexpr (kWarps > 1) {
      __shared__ State of_warp[kBuffers][kWarps];
      if (threadIdx.x % kWarpThreads == 0) of_warp[buffer()][threadIdx.x / kWarpThreads] = state;
      __syncthreads();
      state = of_all<kWarps>(of_warp[buffer()], blockDim.x / kWarpThreads);
    }
    if constexpr (kClusterBlocks > 1) {
      const State* const of_blocks = Cluster::of_blocks(state, outputs_);
      state = of_all<kClusterBlocks>(of_blocks, Cluster::blocks());
    }
    ++outputs_;
    return state;
  }

 private:
  static constexpr unsigned kLanes = kThreads < kWarpThreads ? kThreads : kWarpThreads;
  static constexpr unsigned kWarps = kThreads / kLanes;
  static constexpr unsigned kBuffers = kRepeats ? 2 : 1;
  using Cluster = ClusterExchange<Combine, State, kClusterBlocks, kRepeats, kExchange, kMayBeFewer>;
  static_assert((kThreads & (kThreads - 1)) == 0 && (kClusterBlocks == 1 || kGrid == Grid::none));
  static_assert(kThreads >= kWarpThreads || (kClusterBlocks == 1 && kGrid == Grid::none && kTail == Tail::warp));

  /// Combines kCount States that lie side by side, of which `launched` are there, in all lanes.
  template <unsigned kCount>
  __device__ State of_all(const State* states, unsigned launched) const {
    const unsigned mine = threadIdx.x % kCount;
    const bool is_there = !kMayBeFewer || mine < launched;
    return op_.template in_all_lanes<kCount>(is_there ? states[mine] : op_.identity());
  }

  /// Combines kCount States that lie side by side in shared memory, in lane 0; if kFoldsWarps, in all lanes. Every lane
  /// of the warp calls it.
  template <unsigned kCount>
  __device__ State first_of(const State* states) const {
    const unsigned lane = threadIdx.x % kWarpThreads;
    if constexpr (kFoldsWarps<Op>) {
      constexpr unsigned kFolded = kCount < kMostFolded ? kCount : kMostFolded, kLeft = kCount / kFolded;
      return Op::template in_all_lanes<kLeft>(fold_some<Op, kFolded, kLeft>(states, lane % kLeft));
    } else {
      constexpr unsigned kLanesOfThem = kByInstruction<Op> ? kWarpThreads : kCount;
      return lanes_reduce<Op, kLanesOfThem>(lane < kCount ? states[lane] : op_.identity(), op_);
    }
  }

  /// True in the first of the block's threads that share an output.
  __device__ bool in_block(State& state) const {
    if constexpr (kTail == Tail::shared) {
      __shared__ State of_thread[kThreads];
      of_thread[threadIdx.x] = state;
      __syncthreads();
      const SmemCombine<Op, kThreads, kThreads, 1> smem(of_thread, 1);
      if (threadIdx.x == 0) state = smem.combined(0);
    } else {
      if constexpr (kRepeats) __syncwarp();  // else ptxas adds code for lanes that the last output drove apart
      state = lanes_reduce<Op, kLanes>(state, op_);
      return of_warps(state);
    }
    return threadIdx.x == 0;
  }

  /// The same; the first lane of each warp has the State of its lanes.
  __device__ bool of_warps(State& state) const {
    if constexpr (kWarps == 1) return threadIdx.x % kLanes == 0;
    alignas(16) __shared__ State of_warp[kWarps];
    if (threadIdx.x % kWarpThreads == 0) of_warp[threadIdx.x / kWarpThreads] = state;
    __syncthreads();
    if (threadIdx.x < kWarpThreads) state = first_of<kWarps>(of_warp);
    return threadIdx.x == 0;
  }

  /// True in the first thread of the cluster.
  __device__ bool in_cluster(State& state) const {
    constexpr bool kInFirstWarp = kFoldsWarps<Op> && kWarps > 1;  // of_warps() left the State in all of its lanes
    if constexpr (kInFirstWarp && kRepeats) __syncwarp();  // they have read what is in shared memory
    if (kExchange == Exchange::receipts && !kInFirstWarp && threadIdx.x < kWarpThreads)
      state = shuffle_from(state, 0u);
    const State* const states = Cluster::of_blocks(state, outputs_, 1);
    const bool is_first_warp = rank_in_cluster() == 0 && threadIdx.x < kWarpThreads;
    if (is_first_warp) state = first_of<kClusterBlocks>(states);
    return is_first_warp && threadIdx.x == 0;
  }

  __device__ unsigned buffer() const { return outputs_ % kBuffers; }
  Op op_;
  unsigned outputs_ = 0;  ///< so far
};

}  // namespace hone
