// Rows for canonical_softmax.cuh that pass through rings in shared memory, which bulk copies fill ahead of their use.
//
// A row belongs to a block or a cluster, each block of which has arguments.chunks of its chunks, and warp w of a block
// chunks w, w + kWarps, … of these. Each warp has a ring of arguments.slots chunks: those that it sums next, of this
// row and of the next ones. When it has loaded a chunk into registers, the next copy takes its place. It keeps the
// weights of the row's chunks, or elements for the logarithm, behind the rings, and writes the results when all warps
// have found their sums (FoundSums). So loads are in flight while warps wait for each other, compute and write.
//
// A cluster takes rows in a stride of all: all clusters of the grid should be resident.
//
// Rows that begin anywhere have packs that are aligned in the input, counted from the one that a row begins in. A slot
// has one pack more then, the first of the next chunk, so that chunks can be turned as in RowPacks.
//
// Rows whose weights are relative to another power of two than was guessed are read and summed again.
//
// Constraints: those of canonical_softmax.cuh but for kChunks; packs of 16 bytes; 1 <= slots <= kMostSlots; a row has
// at most 32 · kOfLane chunks; dynamic shared memory has the slots of all warps, and kKeptBytes for each of a block's
// chunks.
#pragma once

#include "canonical_found_sums.cuh"
#include "canonical_softmax_chunk.cuh"
#include "dynamic_smem.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kClusterBlocks, unsigned kOfLane>
class CanonicalSoftmaxRing {
 public:
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Arguments = typename Types::Arguments;
  using InPack = typename Types::InPack;
  using Found = FoundSums<Types, kBlockThreads, kClusterBlocks, kOfLane>;
  static constexpr unsigned kElements = kChunkElements<In>, kPack = Types::kPack, kChunkPacks = kElements / kPack;
  static constexpr unsigned kSlotPacks = kChunkPacks + (Types::kIsAligned ? 0 : 1), kMostSlots = 4;
  static constexpr unsigned kSlotBytes = kSlotPacks * sizeof(InPack);
  using Kept = KeptPacks<Types>;
  static constexpr unsigned kKeptBytes = kChunkPacks * Kept::kPackBytes;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static_assert(sizeof(InPack) == 16 && kChunkPacks % kWarpThreads == 0);

  struct Shared {
    unsigned long long landed[kWarps * kMostSlots];
    Found found;
  };

  static __device__ void run(const Arguments& all) {
    __shared__ Shared shared;
    for (unsigned i = threadIdx.x; i < kWarps * kMostSlots; i += kBlockThreads) init_mbarrier(shared.landed + i, 1);
    shared.found.init();
    publish_mbarriers();
    if constexpr (kClusterBlocks > 1) arrive_at_cluster_barrier();
    pdl_release_then_wait();
    __syncthreads();
    CanonicalSoftmaxRing ring(all, shared);
    ring.fill();
    if constexpr (kClusterBlocks > 1) wait_at_cluster_barrier();
    ring.write_rows();
  }

 private:
  using State = typename Found::State;
  using Heaviest = HeaviestElement<Types>;
  using Weight = SoftmaxWeight<Types>;
  using GuessedPowers = typename Types::GuessedPowers;
  using Guess = SoftmaxWeight<Types, GuessedPowers>;
  using Largest = ExtremeElement<true, Acc, In>;
  using Mask = PackMask<InPack>;
  static constexpr unsigned kOfLanePacks = kChunkPacks / kWarpThreads;
  static constexpr unsigned kStep = kKeptBytes / sizeof(typename Kept::Piece) * kWarps;  ///< to a warp's next chunk

  template <bool kIsWhole>
  using Chunk = HeldChunks<Types, kWarpThreads, kOfLanePacks, 1, false, kIsWhole>;

  __device__ CanonicalSoftmaxRing(const Arguments& arguments, Shared& of_block) : all(arguments), shared(of_block) {}

  __device__ unsigned long long row_of(unsigned r) const {
    return blockIdx.x / kClusterBlocks + static_cast<unsigned long long>(r) * (gridDim.x / kClusterBlocks);
  }
  __device__ const In* in_of(unsigned r) const { return softmax_input<Types>(all, row_of(r)); }
  static __device__ unsigned elements_before(const In* row) {
    return Types::kIsAligned ? 0 : elements_behind_alignment<sizeof(InPack)>(row);
  }
  /// Number of the warp's chunk i in its row.
  __device__ unsigned number_of(unsigned i) const { return first + i * kWarps; }
  /// Elements of the row from that chunk on, or so many that the next chunk's first pack is whole.
  __device__ unsigned elements_from(unsigned i) const {
    const Index begin = static_cast<Index>(number_of(i)) * kElements, columns = static_cast<Index>(all.columns);
    return columns <= begin ? 0 : at_most(columns - begin, kElements + kPack);
  }

  __device__ InPack* packs() const {
    return reinterpret_cast<InPack*>(dynamic_smem) + (warp * all.slots + slot) * kSlotPacks;
  }
  __device__ unsigned long long* landed() const { return shared.landed + warp * kMostSlots + slot; }
  __device__ Kept kept() const {
    return Kept(dynamic_smem + kWarps * all.slots * kSlotBytes + warp * kKeptBytes);
  }

  __device__ void fill() {
    if (chunks == 0) return;
    for (; slot < all.slots; ++slot) copy();
    slot = 0;
  }

  /// Starts the next copy, into the slot, which all lanes have read.
  __device__ void copy() {
    __syncwarp();
    if (copied_row < rows && lane == 0) {
      const unsigned number = number_of(copied), left = elements_from(copied), before = elements_before(copied_in);
      const unsigned behind = before + (left < kElements ? left : kElements);
      auto* from = reinterpret_cast<const InPack*>(copied_in - before) + static_cast<Index>(number) * kChunkPacks;
      InPack* to = packs();
      unsigned count = left == 0 ? 0 : (behind + kPack - 1) / kPack;
      if (number == 0 || left < kElements + kPack) copy_ends(from, to, count, number == 0 ? before : 0, behind);
      if (count > 0) arrive_with_bulk_copy(to, from, count * sizeof(InPack), landed(), last_use_policy());
      else arrive(landed());
    }
    if (++copied < chunks) return;
    copied = 0;
    copied_in = in_of(++copied_row);
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

  __device__ void write_rows() {
    const GuessedPowers guessed{all.guessed, all.scale.factor};
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
      sum_row(r, guessed);
      const State found = shared.found.of_all(number++);
      if (guessed.are_of(found.heaviest)) {
        const Guess weight(guessed, found.heaviest);
        write_row<true>(r, weight, weight.template norm<true>(found.sum));
      } else {
        write_row_again(r, found.heaviest);
      }
    }
  }

  /// Sums the warp's chunks of row r.
  __device__ void sum_row(unsigned r, const GuessedPowers& powers) {
    const unsigned before = elements_before(in_of(r));
    const Mask of_end = Mask::of_first(lane == 0 ? before * sizeof(In) : 0);
    Largest largest;
    Kept to = kept();
#pragma unroll 1
    for (unsigned i = 0; i < chunks; ++i, to.of_lane += kStep) {
      const unsigned left = elements_from(i);
      wait_for_phase(landed(), phase);
      if (left >= kElements) keep(i, sum_chunk<true>(largest, to, before, of_end, kElements, powers));
      else if (left > 0) keep(i, sum_chunk<false>(largest, to, before, of_end, left, powers));
      else copy();
      if (++slot == all.slots) {
        slot = 0;
        phase ^= 1;
      }
    }
    end_sums(CanonicalCombine<Heaviest>::template in_all_lanes<kWarpThreads>(largest.value()));
  }
  __device__ void keep(unsigned i, Acc sum) { shared.found.keep(number, number_of(i), sum); }
  __device__ void end_sums(Acc heaviest) {
    shared.found.end(number, heaviest, static_cast<unsigned>((all.columns + kElements - 1) / kElements));
  }

  /// The sum of the chunk in the slot. kIsWhole: all elements are there.
  template <bool kIsWhole>
  __device__ Acc sum_chunk(Largest& largest, const Kept& to, unsigned before, const Mask& of_end, unsigned elements,
                           const GuessedPowers& powers) {
    Chunk<kIsWhole> chunk;
    chunk.before = before;
    unrolled<kOfLanePacks>([&](unsigned u) {
      chunk.packs[u] = pack_of<kIsWhole>(lane + u * kWarpThreads, before + elements);
    });
    if constexpr (!Types::kIsAligned) {
      InPack end = chunk.packs[0];
      if (lane == 0 && before > 0) end = pack_of<kIsWhole>(kChunkPacks, before + elements);
      chunk.packs[0] = of_end.joined(end, chunk.packs[0]);
    }
    copy();
    powers.turn(chunk.packs);
    largest.add(chunk.packs);
    return weigh_chunk(chunk, to, elements, powers);
  }
  /// Pack p of the slot; what is behind the row has no weight.
  template <bool kIsWhole>
  __device__ InPack pack_of(unsigned p, unsigned behind) const {
    if constexpr (kIsWhole) return packs()[p];
    const InPack weightless = InPack::filled(convert<In>(all.scale.factor < Acc(0) ? highest<Acc>() : lowest<Acc>()));
    if (p * kPack >= behind) return weightless;
    const unsigned there = behind - p * kPack;
    if (there >= kPack) return packs()[p];
    return Mask::of_first(there * sizeof(In)).joined(packs()[p], weightless);
  }

  /// The sum of a chunk, of which weights are kept, or elements.
  template <class AnyChunk, class AnyPowers>
  __device__ Acc weigh_chunk(const AnyChunk& chunk, const Kept& to, unsigned elements, const AnyPowers& powers) const {
    Acc values[kPack];
    chunk.fold_packs(values, [&](unsigned u, Acc (&weights)[kPack]) {
      chunk.weigh_pack(weights, u, elements, powers);
      to.keep(u, chunk.packs[u], weights);
    });
    return fold_lanes<CanonicalSum<Acc>, kPack>(values);
  }

  /// kAsGuessed: there is code for whole chunks.
  template <bool kAsGuessed, class AnyWeight>
  __device__ void write_row(unsigned r, const AnyWeight& weight, const SoftmaxNorm<Acc>& norm) const {
    const unsigned before = elements_before(in_of(r));
    Kept from = kept();
    Out* out = softmax_output<Types>(all, row_of(r)) + static_cast<Index>(first) * kElements;
#pragma unroll 1
    for (unsigned i = 0; i < chunks; ++i, from.of_lane += kStep, out += kWarps * kElements) {
      const unsigned left = elements_from(i);
      if (kAsGuessed && left >= kElements) write_chunk<kAsGuessed>(out, from, before, kElements, weight, norm);
      else if (left > 0) write_chunk<false>(out, from, before, left < kElements ? left : kElements, weight, norm);
    }
  }
  template <bool kIsWhole, class AnyWeight>
  static __device__ void write_chunk(Out* out, const Kept& from, unsigned before, unsigned elements,
                                     const AnyWeight& weight, const SoftmaxNorm<Acc>& norm) {
    HeldChunks<Types, kWarpThreads, kOfLanePacks, 1, !Types::kLog, kIsWhole> chunk;
    chunk.before = before;
    chunk.store(out, elements, weight, norm, [&](unsigned u) { from.take(u, chunk); });
  }

  /// The same with the weights of the row's heaviest element.
  __device__ void write_row_again(unsigned r, Acc heaviest) {
    const Weight weight(heaviest, all.scale.factor);
    Kept to = kept();
#pragma unroll 1
    for (unsigned i = 0; i < chunks; ++i, to.of_lane += kStep) {
      const unsigned left = elements_from(i), elements = left < kElements ? left : kElements;
      if (elements == 0) break;
      Chunk<false> chunk;
      chunk.load(in_of(r) + static_cast<Index>(number_of(i)) * kElements, elements, all.scale.factor, all.input,
                 weight.powers);
      keep(i, weigh_chunk(chunk, to, elements, weight.powers));
    }
    end_sums(heaviest);
    write_row<false>(r, weight, weight.norm(shared.found.of_all(number++).sum));
  }

  const Arguments& all;
  Shared& shared;
  unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  unsigned first = warp + (kClusterBlocks > 1 ? rank_in_cluster() * all.chunks : 0);  ///< chunk of the warp
  unsigned chunks = all.chunks <= warp ? 0 : (all.chunks - warp - 1) / kWarps + 1;    ///< of a row
  unsigned rows =
      all.rows <= row_of(0) ? 0 : static_cast<unsigned>((all.rows - row_of(0) - 1) / (gridDim.x / kClusterBlocks)) + 1;
  unsigned number = 0;           ///< of the next row, or sum, in FoundSums
  unsigned slot = 0, phase = 0;  ///< of the next chunk
  unsigned copied = 0, copied_row = 0;  ///< chunk of the next copy, which takes the slot of the one that is summed
  const In* copied_in = in_of(0);
};

}  // namespace hone
