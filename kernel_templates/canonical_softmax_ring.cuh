// Rows for canonical_softmax.cuh that bulk copies bring to shared memory while the rows before them are summed and
// written.
//
// A row belongs to a block or a cluster, each warp of which has one of its chunks: a block has arguments.chunks of
// them, and as many warps. A warp loads its chunk of row r from its slot, into which the next copy goes at once, sums
// its weights, and tells all what it found (FoundStates). Then it writes the results of row r − 1, whose weights, or
// elements for the logarithm, it has kept in shared memory, and keeps those of row r in their place. What the results
// are made of, one warp of a block makes for all (FoundNorms). So no warp waits for what the others find of a row
// before it has summed the next one, and loads and stores are always in flight.
//
// Rows that begin anywhere have packs that are aligned in the input, counted from the one that a row begins in. A slot
// has one pack more then, the first of the next chunk, so that chunks can be turned as in RowPacks.
//
// Rows whose weights are relative to another power of two than was guessed are read and summed again.
//
// Constraints: those of canonical_softmax.cuh but for kChunks; packs of 16 bytes; a cluster has at most kClusterBlocks
// blocks, and is launched as one if that is not 1; a row has at most 32 · kOfLane chunks; dynamic shared memory has
// kSlotBytes and kKeptBytes for each warp; there are at most 2^31 rows.
#pragma once

#include "canonical_found_states.cuh"
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
  template <unsigned kAhead>
  using Found = FoundStates<Types, kClusterBlocks, kOfLane, kAhead>;
  using Kept = KeptPacks<Types>;
  static constexpr unsigned kElements = kChunkElements<In>, kPack = Types::kPack, kChunkPacks = kElements / kPack;
  static constexpr unsigned kSlotPacks = kChunkPacks + (Types::kIsAligned ? 0 : 1);
  static constexpr unsigned kSlotBytes = kSlotPacks * sizeof(InPack), kKeptBytes = kChunkPacks * Kept::kPackBytes;
  static_assert(sizeof(InPack) == 16 && kChunkPacks % kWarpThreads == 0);

  struct Shared {
    unsigned long long landed[kBlockThreads / kWarpThreads];
    Found<1> found;
    Found<0> found_again;  ///< of rows that are summed again
    FoundNorms<Types> norms;
    unsigned again[kBlockThreads / kWarpThreads];  ///< how many a warp has summed, which no register holds
  };

  static __device__ void run(const Arguments& all) {
    __shared__ Shared shared;
    if (threadIdx.x < kBlockThreads / kWarpThreads) {
      init_mbarrier(shared.landed + threadIdx.x, 1);
      shared.again[threadIdx.x] = 0;
    }
    shared.found.init(all.chunks);
    shared.found_again.init(all.chunks);
    shared.norms.init();
    publish_mbarriers();
    if constexpr (kClusterBlocks > 1) arrive_at_cluster_barrier();
    pdl_release_then_wait();
    __syncthreads();
    CanonicalSoftmaxRing ring(all, shared);
    ring.template copy<false>(0);
    if constexpr (kClusterBlocks > 1) wait_at_cluster_barrier();
    if (!ring.has_row(0) || all.columns == 0) return;
    if (ring.elements == kElements) ring.template write_rows<true>();
    else ring.template write_rows<false>();
  }

 private:
  using State = typename Found<0>::State;
  using Weight = SoftmaxWeight<Types>;
  using GuessedPowers = typename Types::GuessedPowers;
  using Mask = PackMask<InPack>;
  /// A warp's row, of those of its cluster, and its chunk of each. Functions that are called have it in registers.
  struct Place {
    unsigned r, chunk;
  };
  static constexpr unsigned kOfLanePacks = kChunkPacks / kWarpThreads;

  template <bool kIsWhole>
  using Chunk = HeldChunks<Types, kWarpThreads, kOfLanePacks, 1, !Types::kLog, kIsWhole>;

  __device__ CanonicalSoftmaxRing(const Arguments& arguments, Shared& of_block) : all(arguments), shared(of_block) {}

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
      arrive_with_bulk_copy(slot(), in, kSlotBytes, shared.landed + warp, last_use_policy());
      return;
    }
    const unsigned left = elements_left(), before = elements_before(in), behind = before + at_most(left, kElements);
    auto* from = reinterpret_cast<const InPack*>(in - before);
    InPack* to = slot();
    unsigned count = left == 0 ? 0 : (behind + kPack - 1) / kPack;
    if (place.chunk == 0 || left < kElements + kPack)
      copy_ends(from, to, count, place.chunk == 0 ? before : 0, behind);
    if (count > 0) arrive_with_bulk_copy(to, from, count * sizeof(InPack), shared.landed + warp, last_use_policy());
    else arrive(shared.landed + warp);
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

  /// kIsWhole: the warp has all elements of its chunk.
  template <bool kIsWhole>
  __device__ void write_rows() {
    const GuessedPowers guessed{all.guessed, all.scale.factor};
    if (kIsWhole) elements = kElements;
    unsigned& r = place.r;
#pragma unroll 1
    for (; has_row(r); ++r) {
      forget();
      Chunk<kIsWhole> chunk;
      wait_for_phase(shared.landed + warp, r % 2);
      take(chunk, elements_before(in_of(r)));
      copy<kIsWhole>(r + 1);
      forget();
      guessed.turn(chunk.packs);
      const Acc heaviest = heaviest_of(chunk), sum = sum_of(chunk, guessed);
      forget();
      publish(shared.found, r, {sum, heaviest});
      forget();
      if (r == 0 || write<kIsWhole>(r - 1, guessed)) keep(chunk);
      else place = keep_again(all, shared, write_again(all, shared, {r - 1, place.chunk}));
    }
    if (!write<kIsWhole>(r - 1, guessed)) write_again(all, shared, {r - 1, place.chunk});
  }
  /// Has the compiler compute again what it computed from the place: registers that kept it would spill.
  __device__ void forget() {
    settle(place.r);
    settle(place.chunk);
    settle(first_row);
  }
  __device__ void keep(const auto& chunk) const {
    unrolled<kOfLanePacks>([&](unsigned u) { kept().keep(u, chunk.packs[u], chunk.weights[u]); });
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

  static __device__ Acc heaviest_of(const auto& chunk) {
    return CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(largest_of<Acc>(chunk.packs));
  }
  __device__ Acc sum_of(auto& chunk, const auto& powers) const {
    Acc values[kPack];
    chunk.weigh(values, elements, powers);
    return fold_lanes<CanonicalSum<Acc>, kPack>(values);
  }

  __device__ void publish(auto& found, unsigned number, const State& state) const {
    found.keep(number, place.chunk, state);
    if (threadIdx.x == 0) found.expect(number, all.chunks);
  }

  /// Writes the results of row r, whose weights are kept; false if it has other weights.
  template <bool kIsWhole>
  __device__ bool write(unsigned r, const GuessedPowers& guessed) const {
    using GuessedWeight = SoftmaxWeight<Types, GuessedPowers>;
    const auto found = shared.norms.of(r, [&]() -> typename FoundNorms<Types>::Of {
      const State of_all = shared.found.of_all(r);
      return {of_all.heaviest, GuessedWeight(guessed, of_all.heaviest).template norm<true>(of_all.sum)};
    });
    if (!guessed.are_of(found.heaviest)) return false;
    GuessedWeight weight(guessed, found.heaviest);
    Words<Acc> factor(weight.factor);  // logarithms of aligned rows would spill beside a float that is settled
    settle(factor);
    weight.factor = factor;
    Chunk<kIsWhole> chunk;
    chunk.before = elements_before(in_of(r));
    chunk.store(out_of(r), elements, weight, found.norm, [&](unsigned u) { kept().take(u, chunk); });
    return true;
  }
  /// The same with the weights of the row's heaviest element. The place becomes that of the next row.
  static __device__ __noinline__ Place write_again(const Arguments& all, Shared& shared, Place place) {
    const CanonicalSoftmaxRing ring(all, shared);
    const unsigned r = place.r;
    const Acc heaviest = shared.found.of_all(r).heaviest;
    const Weight weight(heaviest, all.scale.factor);
    const unsigned number = shared.again[ring.warp];
    __syncwarp();
    if (ring.lane == 0) shared.again[ring.warp] = number + 1;
    Chunk<false> chunk;
    ring.publish(shared.found_again, number, {ring.sum_of_row(chunk, r, weight.powers), heaviest});
    chunk.store(ring.out_of(r), ring.elements, weight, weight.norm(shared.found_again.of_all(number).sum));
    return {r + 1, place.chunk};
  }
  /// Keeps what results of row r are made of, which no registers have held meanwhile.
  static __device__ __noinline__ Place keep_again(const Arguments& all, Shared& shared, Place place) {
    const CanonicalSoftmaxRing ring(all, shared);
    Chunk<false> chunk;
    ring.sum_of_row(chunk, place.r, GuessedPowers{all.guessed, all.scale.factor});
    ring.keep(chunk);
    return place;
  }
  __device__ Acc sum_of_row(Chunk<false>& chunk, unsigned r, const auto& powers) const {
    chunk.load(in_of(r), elements, all.scale.factor, all.input, powers);
    return sum_of(chunk, powers);
  }

  const Arguments& all;
  Shared& shared;
  unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  unsigned first_row = kClusterBlocks > 1 ? number_of_cluster() : blockIdx.x;  ///< of the block, or the cluster
  Place place{0, warp + (kClusterBlocks > 1 ? rank_in_cluster() * all.chunks : 0)};
  unsigned elements = at_most(elements_left(), kElements);
};

}  // namespace hone
