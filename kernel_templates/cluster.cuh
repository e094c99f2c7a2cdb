// Clusters of thread blocks: their barrier, stores into the shared memory of another block (DSMEM), and the exchange of
// one State a block. grid.cuh has the contract.
#pragma once

#include "pack.cuh"

namespace hone {

#ifdef HONE_HOST_DEVICE

// This device has no clusters: templates may name these functions, and none may call them.
unsigned rank_in_cluster();
unsigned blocks_of_cluster();
unsigned number_of_cluster();
unsigned clusters_of_grid();
void arrive_at_cluster_barrier();
void wait_at_cluster_barrier();
void arrive_at_cluster_start();
void init_receipt(unsigned long long* receipt);
void expect_bytes(unsigned long long* receipt, unsigned bytes);
void wait_for_bytes(unsigned long long* receipt, unsigned phase);
template <class T>
void send_to_block(T* slot, unsigned long long* receipt, unsigned rank, T value);
template <class T>
void store_in_block(T* slot, unsigned rank, T value);

#else

__device__ unsigned shared_address(const auto* in_shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(in_shared));
}

/// The address in the shared memory of the cluster's block `rank` that `mine` is in this block's.
__device__ inline unsigned address_in_block(unsigned mine, unsigned rank) {
  unsigned theirs;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(rank));
  return theirs;
}

__device__ inline unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline unsigned blocks_of_cluster() {
  unsigned blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

__device__ inline unsigned number_of_cluster() {
  unsigned number;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
  return number;
}

__device__ inline unsigned clusters_of_grid() {
  unsigned clusters;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
  return clusters;
}

__device__ inline void arrive_at_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void wait_at_cluster_barrier() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// Arrives at the first barrier, which says that a block has started, and nothing of its stores: a release would make
/// every warp wait for its loads. init_receipt() makes its mbarrier visible itself.
__device__ inline void arrive_at_cluster_start() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/// A receipt is an mbarrier in shared memory: in each phase one thread of its block expects bytes, which senders
/// complete. The thread that calls this arrives at the cluster's first barrier afterwards.
__device__ inline void init_receipt(unsigned long long* receipt) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(receipt)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void expect_bytes(unsigned long long* receipt, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(receipt)), "r"(bytes)
               : "memory");
}

/// Waits until all bytes of a phase (0, 1, 0, 1, …) are there.
__device__ inline void wait_for_bytes(unsigned long long* receipt, unsigned phase) {
  for (unsigned is_over = 0; is_over == 0;) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_over)
        : "r"(shared_address(receipt)), "r"(phase)
        : "memory");
  }
}

/// DSMEM store: writes `value` to the address of `slot`, given in this block's shared memory, in the shared memory of
/// the cluster's block `rank`, which must have passed a cluster barrier since it started.
template <class T>
__device__ void store_in_block(T* slot, unsigned rank, T value) {
  const auto words = Words<T>(value);
  const unsigned to = address_in_block(shared_address(slot), rank);
  unrolled<sizeof(T) / 4>([&](unsigned i) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to + 4 * i), "r"(words.words[i]) : "memory");
  });
}

/// The same without waiting; completes the bytes of that block's receipt.
template <class T>
__device__ void send_to_block(T* slot, unsigned long long* receipt, unsigned rank, T value) {
  const auto words = Words<T>(value);
  const unsigned to = address_in_block(shared_address(slot), rank);
  const unsigned of_them = address_in_block(shared_address(receipt), rank);
  if constexpr (alignof(T) % 8 == 0) {
    unrolled<sizeof(T) / 8>([&](unsigned i) {
      asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(to + 8 * i),
                   "r"(words.words[2 * i]), "r"(words.words[2 * i + 1]), "r"(of_them)
                   : "memory");
    });
  } else {
    unrolled<sizeof(T) / 4>([&](unsigned i) {
      asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to + 4 * i),
                   "r"(words.words[i]), "r"(of_them)
                   : "memory");
    });
  }
}

#endif

/// The way in which the blocks of a cluster exchange.
enum class Exchange {
  barriers,  ///< stores, and a barrier of all threads of the cluster
  /// Asynchronous stores, of which each block has a receipt: one barrier less, and no thread waits for its own stores.
  /// Sums of 65536 floats take 2.2 µs instead of 2.7. Where blocks of 224 KiB wait long for each other, as in rows of
  /// 2^20 floats, softmax takes 252 µs so, and 230 with barriers (H100, CUDA 13.0, 26 November 2026).
  receipts,
};

/// The States of a cluster's blocks in the shared memory of each. Each Owner, a class, has memory of its own. kRepeats:
/// there are several outputs, one after the other, double buffered: a block sends its next State after its threads have
/// read those of the last output, and the one behind it when it has all next ones. kMayBeFewer: the cluster may be
/// launched with fewer blocks.
template <class Owner, class State, unsigned kBlocks, bool kRepeats, Exchange kExchange, bool kMayBeFewer = false>
struct ClusterExchange {
  static constexpr unsigned kBuffers = kRepeats ? 2 : 1;

  static __device__ unsigned blocks() {
    if constexpr (kMayBeFewer) return blocks_of_cluster();
    else return kBlocks;
  }

  /// Every thread calls it once, ahead of the first exchange.
  static __device__ void start() {
    if constexpr (kExchange == Exchange::receipts) {
      if (threadIdx.x < kBuffers) init_receipt(receipts() + threadIdx.x);
      arrive_at_cluster_start();
    } else {
      arrive_at_cluster_barrier();
    }
  }

  /// Sends the block's State, which its first threads have, to the first `receivers` blocks of the cluster, or to all;
  /// returns all in shared memory. `output` counts the calls. Every thread calls it.
  static __device__ const State* of_blocks(State state, unsigned output, unsigned receivers = blocks()) {
    alignas(16) __shared__ State of_block[kBuffers][kBlocks];
    const unsigned buffer = output % kBuffers;
    State* const slot = of_block[buffer] + rank_in_cluster();
    if constexpr (kExchange == Exchange::receipts) {
      unsigned long long* const receipt = receipts() + buffer;
      if (threadIdx.x == 0) expect_bytes(receipt, blocks() * sizeof(State));
      if (output == 0) wait_at_cluster_barrier();  // every block has started: DSMEM may be accessed
      if (threadIdx.x < blocks()) send_to_block(slot, receipt, threadIdx.x, state);
      wait_for_bytes(receipt, output / kBuffers % 2);
    } else {
      if (output == 0) wait_at_cluster_barrier();
      if (threadIdx.x < receivers) store_in_block(slot, threadIdx.x, state);
      arrive_at_cluster_barrier();
      wait_at_cluster_barrier();
    }
    return of_block[buffer];
  }

 private:
  static __device__ unsigned long long* receipts() {
    __shared__ unsigned long long of_buffer[kBuffers];
    return of_buffer;
  }
};

}  // namespace hone
