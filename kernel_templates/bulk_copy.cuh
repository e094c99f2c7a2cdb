// Bulk copies from global to shared memory, and mbarriers, which tell the threads of a block that bytes have landed, or
// that other threads have arrived. The host device has twins: a bulk copy arrives when it lands.
//
// An mbarrier counts arrivals, and bytes where some are expected. A phase is over when all of both are there; then the
// next begins. A thread that waits names the parity of the phase, 0, 1, 0, 1, …: the phase before the first has parity
// 1, and is over. Nobody may be two phases ahead of a thread that waits.
#pragma once

#include "cluster.cuh"

namespace hone {

#ifdef HONE_HOST_DEVICE

/// The arrivals of a phase in the upper half, all arrivals so far in the lower one.
inline void init_mbarrier(unsigned long long* barrier, unsigned arrivals) {
  *barrier = static_cast<unsigned long long>(arrivals) << 32;
}
inline void arrive(unsigned long long* barrier) {
  __threadfence_block();
  atomicAdd(barrier, 1ull);
}
inline void wait_for_phase(unsigned long long* barrier, unsigned parity) {
  for (;;) {
    const unsigned long long found = atomicAdd(barrier, 0ull);
    if ((found & 0xffffffffu) / (found >> 32) % 2 != parity) break;
    __nanosleep(0);
  }
  __threadfence_block();
}
inline void sleep_until_phase(unsigned long long* barrier, unsigned parity) { wait_for_phase(barrier, parity); }
inline unsigned long long last_use_policy() { return 0; }
inline unsigned long long reuse_policy() { return 0; }
inline void arrive_with_bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* barrier,
                                  unsigned long long) {
  hone_host::start_bulk_copy(to, from, bytes, barrier);
}
inline void publish_mbarriers() {}
inline void fence_before_bulk_copies() {}
inline void prefetch_to_l2(const void*, unsigned) {}
inline void raise_in_bulk(unsigned long long* to, const unsigned long long* from, unsigned count) {
  for (unsigned i = 0; i < count; ++i) atomicMax(to + i, from[i]);
}
inline void wait_for_bulk_reads() {}

#else

__device__ inline void init_mbarrier(unsigned long long* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

/// Called by each thread that has initialised mbarriers, before a barrier of the block: bulk copies see them then, too.
__device__ inline void publish_mbarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Called by a thread that has stored where a bulk copy is to read or write later.
__device__ inline void fence_before_bulk_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void wait_for_phase(unsigned long long* barrier, unsigned parity) { wait_for_bytes(barrier, parity); }

/// Waits while the warp sleeps, and so leaves issue slots to others: wait_for_phase() asks every 20 cycles or so.
__device__ inline void sleep_until_phase(unsigned long long* barrier, unsigned parity) {
  constexpr unsigned kLimit = 10'000'000;  // ns
  for (unsigned is_over = 0; is_over == 0;) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_over)
        : "r"(shared_address(barrier)), "r"(parity), "r"(kLimit)
        : "memory");
  }
}

/// The policies of L2 for bytes that are read for the last time, and for those that it is to keep for another.
__device__ inline unsigned long long last_use_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline unsigned long long reuse_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Arrives, and starts a copy whose bytes belong to the phase. Addresses and bytes are multiples of 16.
__device__ inline void arrive_with_bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* barrier,
                                             unsigned long long l2_policy) {
  expect_bytes(barrier, bytes);
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier)), "l"(l2_policy)
      : "memory");
}

/// Starts to raise words in global memory, whose count is even, to those at `from` in shared memory, which stay as they
/// are until wait_for_bulk_reads(): a relaxed atomic operation for each word, behind earlier stores to it that the thread
/// knows of. The operations do not queue behind all stores of the multiprocessor that are in flight.
__device__ inline void raise_in_bulk(unsigned long long* to, const unsigned long long* from, unsigned count) {
  asm volatile("fence.proxy.async.global;" ::: "memory");
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u64 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(count * 8)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until what the thread's calls of raise_in_bulk() read may change.
__device__ inline void wait_for_bulk_reads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/// Starts to bring so many bytes into L2, but for parts of 16 bytes at their ends. Devices without bulk copies do
/// nothing.
__device__ inline void prefetch_to_l2(const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  const auto first = reinterpret_cast<unsigned long long>(from), begin = (first + 15) / 16 * 16;
  const unsigned long long end = (first + bytes) / 16 * 16;
  if (begin < end)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(
                     reinterpret_cast<const void*>(begin))),
                 "r"(static_cast<unsigned>(end - begin))
                 : "memory");
#endif
}

#endif

}  // namespace hone
