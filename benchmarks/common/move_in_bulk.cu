// Reads an array into shared memory, or copies it through there, by bulk copies: no register holds an element.
//
// Each block has a ring of kStages chunks of kChunkPacks packs of 16 bytes, which one thread keeps full; an mbarrier a
// stage says when its chunk is there. A plain read overwrites the chunk at once; a copy stores it by a second bulk
// copy, and loads into its stage when kLag younger ones have been stored. Chunks are dealt to the blocks in turn.
//
// Needs compute capability 9.0 and kStages × kChunkPacks × 16 bytes of dynamic shared memory. kStages, kChunkPacks and
// kCopies are defined in front of this file. As a dependent launch (PDL) it lets the next one become resident.

namespace {

constexpr unsigned kLag = kCopies ? kStages / 2 : 0;
static_assert(kLag < kStages);

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ inline void wait_for_phase(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ inline void load_chunk(unsigned to, const char* from, unsigned bytes, unsigned barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

__device__ inline void store_chunk(char* to, unsigned from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32) move_in_bulk(const char* in, char* out, unsigned long long packs) {
  extern __shared__ __align__(128) char ring[];
  __shared__ unsigned long long full[kStages];
  constexpr unsigned kChunkBytes = kChunkPacks * 16;
  if (threadIdx.x != 0) return;
  for (unsigned stage = 0; stage < kStages; ++stage)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + stage)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");

  const unsigned long long bytes = packs * 16, stride = static_cast<unsigned long long>(gridDim.x) * kChunkBytes;
  const unsigned long long begin = static_cast<unsigned long long>(blockIdx.x) * kChunkBytes;
  const auto bytes_at = [&](unsigned long long at) {
    return bytes - at < kChunkBytes ? static_cast<unsigned>(bytes - at) : kChunkBytes;
  };
  const auto load = [&](unsigned long long at, unsigned stage) {
    if (at < bytes)
      load_chunk(shared_address(ring + stage * kChunkBytes), in + at, bytes_at(at), shared_address(full + stage));
  };
  for (unsigned stage = 0; stage < kStages; ++stage) load(begin + stage * stride, stage);
  unsigned stage = 0, parity = 0, refilled = (kStages - kLag) % kStages, count = 0;
  for (unsigned long long at = begin; at < bytes; at += stride) {
    wait_for_phase(shared_address(full + stage), parity);
    if constexpr (kCopies) {
      store_chunk(out + at, shared_address(ring + stage * kChunkBytes), bytes_at(at));
      asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLag) : "memory");
    }
    if (!kCopies || count++ >= kLag) load(at + (kStages - kLag) * stride, refilled);
    refilled = refilled + 1 == kStages ? 0 : refilled + 1;
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
  if constexpr (kCopies) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
