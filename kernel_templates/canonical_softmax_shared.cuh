// Rows for canonical_softmax.cuh that are held in shared memory. The length of a row changes the shared memory of a
// launch, not the registers of a thread, so many warps are resident, and some load while others compute or store.
//
// A row belongs to a warp, a block or a cluster; arguments.chunks is how many of its chunks each block has, and a warp
// of those that share a row takes 2^run_levels of them, one after the other. Each chunk has a slot, where a lane keeps
// the weights of its elements, or the elements for the logarithm. No thread reads what another one kept.
//
// Constraints: those of canonical_softmax.cuh but for kChunks; dynamic shared memory has a slot for each chunk of a row
// that a block has, for each row that it holds at once.
#pragma once

#include "canonical_softmax_chunk.cuh"
#include "combine.cuh"

namespace hone {

extern __shared__ __align__(16) unsigned char slots_in_smem[];

/// kWarps of a block share a row: one, or all.
template <class Types, unsigned kBlockThreads, unsigned kWarps, unsigned kClusterBlocks>
struct CanonicalSoftmaxShared {
  using Acc = typename Types::Acc;
  using In = typename Types::In;
  using InPack = typename Types::InPack;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kElements = kChunkElements<In>, kPack = Types::kPack;
  static constexpr unsigned kRows = kBlockThreads / kWarpThreads / kWarps;  ///< of a block, at once
  static constexpr unsigned kSlotBytes = kElements * (Types::kLog ? sizeof(In) : sizeof(Acc));
  static_assert(kRows == 1 || (kWarps == 1 && kClusterBlocks == 1));

  static __device__ void run(const typename Types::Arguments& all) {
    Combine<CanonicalCombine<CanonicalPart<Acc>>, kWarps * kWarpThreads, kClusterBlocks, Grid::none, true> combine;
    const unsigned warp = threadIdx.x / kWarpThreads;
    const unsigned begin = kWarps == 1 ? 0 : warp << all.run_levels;  // the warp's first chunk of the block's part
    const unsigned first = (begin + (kClusterBlocks > 1 ? rank_in_cluster() * all.chunks : 0)) * kElements;
    const unsigned most = begin < all.chunks ? kElements << all.run_levels : 0;
    const unsigned left = all.columns < first ? 0 : static_cast<unsigned>(all.columns) - first;
    const unsigned columns = uniform(left < most ? left : most);
    unsigned char* const slots = slots_in_smem + (kRows > 1 ? warp * all.chunks : begin) * kSlotBytes;
    Weight weight(all.scale.factor);

    for (unsigned long long row = blockIdx.x / kClusterBlocks * kRows + (kRows > 1 ? warp : 0); row < all.rows;) {
      const In* const in = softmax_input<Types>(all, row) + first;
      Acc heaviest = lowest<Acc>();
      RunTree<Weight, unsigned> tree;
#pragma unroll 1
      for (unsigned i = 0; i < columns; i += kElements) {
        typename Chunk::Packs packs;
        Chunk::load(packs, in + i, columns - i, all.scale.factor);
        heaviest = larger<false>(heaviest, heaviest_of<Acc>(packs, all.scale.factor));
        unsigned char* const slot = slots + i / kElements * kSlotBytes;
        Acc values[kPack];
        Chunk::weigh(values, packs, columns - i, weight.powers, [&](unsigned u, const Acc* weights) {
          if constexpr (Types::kLog) *pack_in(slot, u) = packs[u];
          else keep(slot, u, weights);
        });
        tree.template push<0>(fold_lanes<CanonicalSum<Acc>, kPack>(values));
      }
      const Acc of_warp = tree.root();
      const auto whole = combine.to_all({heaviest, threadIdx.x % kWarpThreads == 0 ? of_warp : -Acc(0)});
      if (!weight.settle(whole.heaviest)) continue;
      write(softmax_output<Types>(all, row) + first, slots, columns, weight, whole.sum);
      row += gridDim.x / kClusterBlocks * kRows;
    }
  }

 private:
  using Chunk = HeldChunks<Types, kWarpThreads, kElements / (kWarpThreads * kPack)>;

  /// Lanes have their pieces of 16 bytes side by side in shared memory, so that there are no bank conflicts.
  static constexpr unsigned kMost = 16 / sizeof(Acc), kPiece = kPack < kMost ? kPack : kMost, kPieces = kPack / kPiece;
  using Piece = Pack<Acc, kPiece>;

  static __device__ Piece* piece_in(unsigned char* slot, unsigned u, unsigned piece) {
    return reinterpret_cast<Piece*>(slot) + (u * kPieces + piece) * kWarpThreads + threadIdx.x % kWarpThreads;
  }
  static __device__ InPack* pack_in(unsigned char* slot, unsigned u) {
    return reinterpret_cast<InPack*>(slot) + u * kWarpThreads + threadIdx.x % kWarpThreads;
  }
  static __device__ void keep(unsigned char* slot, unsigned u, const Acc* weights) {
#pragma unroll
    for (unsigned p = 0; p < kPieces; ++p)
      *piece_in(slot, u, p) = Piece::of([&](unsigned e) { return weights[p * kPiece + e]; });
  }

  /// Writes what a warp has kept, a pack of each lane at a time: few registers hold results.
  static __device__ void write(typename Types::Out* out, unsigned char* slots, unsigned columns, const Weight& weight,
                               Acc sum) {
    using Part = HeldChunks<Types, kWarpThreads, 1>;
    constexpr unsigned kPartElements = Part::kMostColumns;
    const auto norm = weight.norm(sum);
#pragma unroll 1
    for (unsigned i = 0; i < columns; i += kElements) {
      unsigned char* const slot = slots + i / kElements * kSlotBytes;
#pragma unroll
      for (unsigned u = 0; u < kElements / kPartElements; ++u) {
        const unsigned before = i + u * kPartElements, left = columns > before ? columns - before : 0;
        if constexpr (Types::kLog) {
          const InPack pack = *pack_in(slot, u);
          Part::store(out + before, left, weight.is_nan, [&](unsigned, unsigned e) {
            return weight.of_kept(weight.exponent(convert<Acc>(pack[e])), norm);
          });
        } else {
          Acc weights[kPack];
#pragma unroll
          for (unsigned p = 0; p < kPieces; ++p) {
            const Piece piece = *piece_in(slot, u, p);
#pragma unroll
            for (unsigned e = 0; e < kPiece; ++e) weights[p * kPiece + e] = piece[e];
          }
          Part::store(out + before, left, weight.is_nan,
                      [&](unsigned, unsigned e) { return weight.of_kept(weights[e], norm); });
        }
      }
    }
  }
};

}  // namespace hone
