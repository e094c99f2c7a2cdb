// The kernel of all built-in families, and synchronisation between blocks and between launches.
//
// The contract of all kernels: Every thread calls pdl_release_then_wait() before it first reads or writes global
// memory, and at least one thread of every grid calls it, since a kernel behind this one waits for the kernels before
// it only through this one. With PDL (programmatic dependent launch) the next kernel of the stream may then become
// resident early, but passes its own wait only when all earlier kernels have completed. The workspace starts with a
// header of kWorkspaceHeaderBytes, which is zero between launches; partials follow. A word of the header is the ticket:
// each block stores its partial, then one thread calls take_last_ticket(), an acquire-release atomic that wraps to 0
// (is_last_block() does so for a block); the block that gets the last ticket combines all partials. Other words may be
// counters: they only rise in a launch; count_up() releases, wait_for_count() acquires, and the last block sets them
// back to 0. A block may spin on a counter only if the blocks that raise it are already running. In a cluster every
// thread of every block calls arrive_at_cluster_barrier() and wait_at_cluster_barrier() equally often: one barrier
// before the first store into another block's shared memory (DSMEM), and one between stores by store_in_block() and
// reads. Those by send_to_block() complete bytes of an mbarrier of the receiver, a receipt; readers wait for it alone.
#pragma once

#include "cluster.cuh"
#include "pack.cuh"

namespace hone {

template <class Arguments> __device__ Arguments arguments_of(void (*)(const Arguments&));

/// Runs kBody with the launch's arguments, a struct of *_arguments.h. kMinBlocks: that of __launch_bounds__, or 0.
template <auto kBody, unsigned kBlockThreads, unsigned kMinBlocks = 0>
__global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    kernel(const __grid_constant__ decltype(arguments_of(kBody)) arguments) {
  kBody(arguments);
}

inline constexpr unsigned kWorkspaceHeaderBytes = 128;

template <class Partial>
__device__ Partial* partials_in(void* workspace) {
  return reinterpret_cast<Partial*>(static_cast<char*>(workspace) + kWorkspaceHeaderBytes);
}

/// PDL: lets the next kernel of the stream become resident from now on, then waits until the writes of all earlier
/// kernels are visible. Later calls return at once.
__device__ inline void pdl_release_then_wait() {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Called by one thread of each of `count` blocks. Returns true to the last caller, which then sees everything that the
/// others wrote before their calls; its block sees it after a barrier. The ticket is 0 again afterwards.
__device__ inline bool take_last_ticket(unsigned* ticket, unsigned count) {
#ifdef HONE_HOST_DEVICE
  __threadfence();
  const unsigned taken = atomicInc(ticket, count - 1);
  __threadfence();
#else
  // One acq_rel instruction: a relaxed atomic between two fences costs 0.3 µs more on an H200.
  unsigned taken;
  asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(taken) : "l"(ticket), "r"(count - 1) : "memory");
#endif
  return taken == count - 1;
}

/// Called by every thread of a block after its partial is stored: by thread 0 itself, or before a barrier. True in all
/// threads of the block that gets the last ticket, which then see what all blocks stored.
__device__ inline bool is_last_block(void* workspace) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) is_last = take_last_ticket(static_cast<unsigned*>(workspace), gridDim.x);
  __syncthreads();
  return is_last;
}

/// Adds 1 to a counter, after what the calling thread did, and its block before the last barrier (release semantics).
__device__ inline void count_up(unsigned* counter) {
#ifdef HONE_HOST_DEVICE
  __threadfence();
  atomicAdd(counter, 1u);
#else
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(counter)) : "memory");
#endif
}

/// Spins until a counter, which never falls, is at least `count`. Writes before the count_up() calls are then visible
/// to the calling thread, and to its block after a barrier.
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

/// Loads data that another SM wrote: from L2, bypassing this SM's L1.
template <class T>
__device__ T load_from_l2(const T* address) {
  Words<T> words;
  const auto* from = reinterpret_cast<const unsigned*>(address);
  unrolled<sizeof(T) / 4>([&](unsigned i) { words.words[i] = __ldcg(from + i); });
  return words.value();
}

/// Loads kCount neighbours likewise, by 16 bytes: together they are a multiple of that, and so is their address.
template <class T, unsigned kCount>
__device__ void load_packs_from_l2(T (&objects)[kCount], const T* address) {
  uint4 packs[sizeof(objects) / sizeof(uint4)];
  static_assert(sizeof(packs) == sizeof(objects));
  const auto* from = reinterpret_cast<const uint4*>(address);
  unrolled<sizeof(packs) / sizeof(uint4)>([&](unsigned i) { packs[i] = __ldcg(from + i); });
  memcpy(objects, packs, sizeof(packs));
}

}  // namespace hone
