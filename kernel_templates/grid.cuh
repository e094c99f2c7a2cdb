// How blocks and launches meet: tickets for the last block, clusters of blocks, and launches that overlap.
#pragma once

#include "pack.cuh"

namespace hone {

/// A workspace starts with this many bytes that are zero between launches; partial results follow.
inline constexpr unsigned kWorkspaceHeaderBytes = 128;

template <class Partial>
__device__ Partial* partials_in(void* workspace) {
  return reinterpret_cast<Partial*>(static_cast<char*>(workspace) + kWorkspaceHeaderBytes);
}

/// In every kernel, by every thread before it reads or writes memory, and by one at least: what waits for this kernel
/// waits for the earlier ones through it. Later calls return at once. Where launches may overlap (programmatic dependent
/// launch), the next kernel of the stream may take its place on the multiprocessors from now on, and this one waits
/// until all that earlier kernels wrote is visible: the input may be what the kernel before has just written.
__device__ inline void pdl_release_then_wait() {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Called by one thread of each of `count` blocks: true for the last, which then sees all that the others wrote before
/// their calls, and so does its block behind a barrier. The ticket is 0 again afterwards.
__device__ inline bool take_last_ticket(unsigned* ticket, unsigned count) {
#ifdef HONE_HOST_DEVICE
  __threadfence();
  const unsigned taken = atomicInc(ticket, count - 1);
  __threadfence();
#else
  // One instruction with both orders: a fence on either side of a plain atomic costs 0.3 µs more on an H200.
  unsigned taken;
  asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(taken) : "l"(ticket), "r"(count - 1) : "memory");
#endif
  return taken == count - 1;
}

/// Adds one to a counter, after all that the calling thread, and its block before a barrier, has read and written.
__device__ inline void count_up(unsigned* counter) {
#ifdef HONE_HOST_DEVICE
  __threadfence();
  atomicAdd(counter, 1u);
#else
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(counter)) : "memory");
#endif
}

/// Waits until a counter, which never falls, is at least `count`; what was written before it was counted up is then
/// visible to the calling thread, and to its block behind a barrier.
__device__ inline void wait_for_count(unsigned* counter, unsigned count) {
#ifdef HONE_HOST_DEVICE
  while (atomicAdd(counter, 0u) < count) __nanosleep(0);
  __threadfence();
#else
  for (unsigned found = 0;;) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(found)
                 : "l"(__cvta_generic_to_global(counter))
                 : "memory");
    if (found >= count) break;
    __nanosleep(40);
  }
#endif
}

/// Reads what another multiprocessor wrote: through L2, never from this one's own cache.
template <class T>
__device__ T load_from_l2(const T* address) {
  Words<T> words;
  const auto* from = reinterpret_cast<const unsigned*>(address);
#pragma unroll
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) words.words[i] = __ldcg(from + i);
  return words.value();
}

#ifndef HONE_HOST_DEVICE

__device__ inline unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Every thread of every block of the cluster must call arrive and then wait, as often as the others.
__device__ inline void arrive_at_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void wait_at_cluster_barrier() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Stores `value` where `slot`, in this block's shared memory, lies in that of the cluster's block `rank`, which must
/// have passed a cluster barrier since it started.
template <class T>
__device__ void store_in_block(T* slot, unsigned rank, T value) {
  const auto words = Words<T>::of(value);
  const auto mine = static_cast<unsigned>(__cvta_generic_to_shared(slot));
  unsigned theirs;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(rank));
#pragma unroll
  for (unsigned i = 0; i < sizeof(T) / 4; ++i)
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(theirs + 4 * i), "r"(words.words[i]) : "memory");
}

#endif

}  // namespace hone
