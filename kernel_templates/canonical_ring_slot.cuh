// The slot of shared memory through which a warp's chunks of rows pass, for canonical_softmax_ring.cuh: where they are,
// and how they come to the slot, and from there to registers.
//
// Rows that begin anywhere have packs that are aligned in the input, counted from the one that a row begins in. A slot
// has one pack more then, the first of the next chunk, so that chunks can be turned as in RowPacks.
#pragma once

#include "bulk_copy.cuh"
#include "canonical_softmax_chunk.cuh"
#include "dynamic_smem.cuh"

namespace hone {

/// A warp's slot and chunks. Dynamic shared memory has kSlotBytes and kKeptBytes for each warp.
template <class Types, unsigned kClusterBlocks>
struct RingSlot {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Arguments = typename Types::Arguments;
  using InPack = typename Types::InPack;
  using Kept = KeptPacks<Types>;
  using Mask = PackMask<InPack>;
  static constexpr unsigned kElements = kChunkElements<In>, kPack = Types::kPack, kChunkPacks = kElements / kPack;
  static constexpr unsigned kSlotPacks = kChunkPacks + (Types::kIsAligned ? 0 : 1);
  static constexpr unsigned kSlotBytes = kSlotPacks * sizeof(InPack), kKeptBytes = kChunkPacks * Kept::kPackBytes;
  static constexpr unsigned kOfLanePacks = kChunkPacks / kWarpThreads;
  static_assert(sizeof(InPack) == 16 && kChunkPacks % kWarpThreads == 0);

  template <bool kIsWhole>
  using Chunk = HeldChunks<Types, kWarpThreads, kOfLanePacks, 1, !Types::kLog, kIsWhole>;
  /// A warp's row, of those of its cluster, and its chunk of each. Functions that are called have it in registers.
  struct Place {
    unsigned r, chunk;
  };

  __device__ RingSlot(const Arguments& arguments, unsigned long long* of_warps)
      : all(arguments), landed(of_warps + threadIdx.x / kWarpThreads) {}

  __device__ unsigned row_of(unsigned r) const {
    return first_row + r * (kClusterBlocks > 1 ? clusters_of_grid() : gridDim.x);
  }
  __device__ bool has_row(unsigned r) const { return row_of(r) < static_cast<unsigned>(all.rows); }
  __device__ Index begin() const { return static_cast<Index>(place.chunk) * kElements; }
  __device__ const In* in_of(unsigned r) const { return softmax_input<Types>(all, row_of(r)) + begin(); }
  __device__ Out* out_of(unsigned r) const { return softmax_output<Types>(all, row_of(r)) + begin(); }
  /// Elements of the row from the chunk on, or so many that the next chunk's first pack is whole.
  __device__ unsigned elements_left() const {
    const auto columns = static_cast<Index>(all.columns);
    return columns <= begin() ? 0 : at_most(columns - begin(), kElements + kPack);
  }
  static __device__ unsigned elements_before(const In* chunk) {
    return Types::kIsAligned ? 0 : elements_behind_alignment<sizeof(InPack)>(chunk);
  }

  __device__ unsigned char* of_warp() const { return dynamic_smem + warp * (kSlotBytes + kKeptBytes); }
  __device__ InPack* slot() const { return reinterpret_cast<InPack*>(of_warp()); }
  __device__ Kept kept() const { return Kept(of_warp() + kSlotBytes); }

  /// Copies the warp's chunk of row r, if there is one, into its slot, which all lanes have read.
  template <bool kIsWhole>
  __device__ void copy(unsigned r) const {
    __syncwarp();
    if (lane != 0 || !has_row(r)) return;
    const In* const in = in_of(r);
    if constexpr (kIsWhole && Types::kIsAligned) {
      arrive_with_bulk_copy(slot(), in, kSlotBytes, landed, last_use_policy());
      return;
    }
    const unsigned left = elements_left(), before = elements_before(in), behind = before + at_most(left, kElements);
    auto* from = reinterpret_cast<const InPack*>(in - before);
    InPack* to = slot();
    unsigned count = left == 0 ? 0 : (behind + kPack - 1) / kPack;
    if (place.chunk == 0 || left < kElements + kPack)
      copy_ends(from, to, count, place.chunk == 0 ? before : 0, behind);
    if (count > 0) arrive_with_bulk_copy(to, from, count * sizeof(InPack), landed, last_use_policy());
    else arrive(landed);
  }
  /// Copies the elements of the first and the last pack one at a time, if the pack reaches beyond the input.
  __device__ void copy_ends(const InPack*& from, InPack*& to, unsigned& count, unsigned begin, unsigned behind) const {
    if (count == 0) return;
    const unsigned last = count - 1;
    if (copy_elements(from + last, to + last, last == 0 ? begin : 0, behind - last * kPack)) --count;
    if (Types::kIsAligned || count == 0 || !copy_elements(from, to, begin, kPack)) return;
    ++from;
    ++to;
    --count;
  }
  __device__ bool copy_elements(const InPack* from, InPack* to, unsigned begin, unsigned end) const {
    const auto* const elements = reinterpret_cast<const In*>(from);
    if (are_in(all.input, elements, kPack)) return false;
#pragma unroll 1
    for (unsigned e = begin; e < end; ++e) reinterpret_cast<In*>(to)[e] = elements[e];
    fence_before_bulk_copies();
    return true;
  }

  /// Loads the chunk from the slot.
  template <bool kIsWhole>
  __device__ void take(Chunk<kIsWhole>& chunk, unsigned before) const {
    chunk.before = before;
    unrolled<kOfLanePacks>([&](unsigned u) {
      chunk.packs[u] = pack_of<kIsWhole>(lane + u * kWarpThreads, before + elements);
    });
    if constexpr (!Types::kIsAligned) {
      InPack end = chunk.packs[0];
      if (lane == 0 && before > 0) end = pack_of<kIsWhole>(kChunkPacks, before + elements);
      chunk.packs[0] = Mask::of_first(lane == 0 ? before * sizeof(In) : 0).joined(end, chunk.packs[0]);
    }
  }
  /// Pack p of the slot; what is behind the row has no weight.
  template <bool kIsWhole>
  __device__ InPack pack_of(unsigned p, unsigned behind) const {
    if constexpr (kIsWhole) return slot()[p];
    const InPack weightless = InPack::filled(convert<In>(all.scale.factor < Acc(0) ? highest<Acc>() : lowest<Acc>()));
    if (p * kPack >= behind) return weightless;
    const unsigned there = behind - p * kPack;
    if (there >= kPack) return slot()[p];
    return Mask::of_first(there * sizeof(In)).joined(slot()[p], weightless);
  }

  const Arguments& all;
  unsigned long long* landed;  ///< of the warp: its copies have landed
  unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  unsigned first_row = kClusterBlocks > 1 ? number_of_cluster() : blockIdx.x;  ///< of the block, or the cluster
  Place place{0, warp + (kClusterBlocks > 1 ? rank_in_cluster() * all.chunks : 0)};
  unsigned elements = at_most(elements_left(), kElements);
};

}  // namespace hone
