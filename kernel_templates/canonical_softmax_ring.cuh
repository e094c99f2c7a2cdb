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
// Rows whose weights are relative to another power of two than was guessed are read and summed again.
//
// Constraints: those of canonical_softmax.cuh but for kChunks; packs of 16 bytes; a cluster has at most kClusterBlocks
// blocks, and is launched as one if that is not 1; a row has at most 32 · kOfLane chunks; dynamic shared memory has
// kSlotBytes and kKeptBytes for each warp; there are at most 2^31 rows.
#pragma once

#include "canonical_found_states.cuh"
#include "canonical_ring_slot.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kClusterBlocks, unsigned kOfLane>
class CanonicalSoftmaxRing : RingSlot<Types, kClusterBlocks> {
  using Slot = RingSlot<Types, kClusterBlocks>;

 public:
  using typename Slot::Acc, typename Slot::Arguments;
  using Slot::kSlotBytes, Slot::kKeptBytes;
  template <unsigned kAhead>
  using Found = FoundStates<Types, kClusterBlocks, kOfLane, kAhead>;

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
  using typename Slot::Place;
  template <bool kIsWhole>
  using Chunk = typename Slot::template Chunk<kIsWhole>;
  using Slot::kElements, Slot::kPack, Slot::kOfLanePacks;
  using Slot::all, Slot::landed, Slot::lane, Slot::warp, Slot::first_row, Slot::place, Slot::elements;
  using Slot::has_row, Slot::in_of, Slot::out_of, Slot::elements_before, Slot::copy, Slot::take, Slot::kept;

  __device__ CanonicalSoftmaxRing(const Arguments& arguments, Shared& of_block)
      : Slot(arguments, of_block.landed), shared(of_block) {}

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
      wait_for_phase(landed, r % 2);
      take(chunk, elements_before(in_of(r)));
      this->template copy<kIsWhole>(r + 1);
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
    const auto found = shared.norms.of_row(r, [&] {
      const State of_all = shared.found.of_all(r);
      const auto norm = GuessedWeight(guessed, of_all.heaviest).template norm<true>(of_all.sum);
      return typename FoundNorms<Types>::OfRow{of_all.heaviest, norm};
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

  Shared& shared;
};

}  // namespace hone
