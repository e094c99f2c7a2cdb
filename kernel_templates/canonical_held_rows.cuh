// The rows of canonical_softmax_held.cuh, and where a block keeps the sums of their tree chunks
// (canonical_held_order.cuh).
//
// A row that begins within a pack has a pack more: tree chunks are counted from the pack that it begins in, and share
// the packs between them. They are turned as in RowPacks, and the pack is written with the chunk that it begins.
//
// Sums are kept of as many rows as the ring has parts, rounded up to a power of two. Those of row r are read before r
// is written, and the first chunk of the row that they make room for lands where one of r was.
#pragma once

#include "canonical_softmax_write.cuh"
#include "dynamic_smem.cuh"

namespace hone {

/// The whole packs first, first + kThreads, … < end of a row, and the elements around them, for one thread.
template <class Types, unsigned kThreads>
struct CanonicalHeldRow {
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  static constexpr unsigned kPack = Types::kPack;

  const typename Types::In* in;
  typename Types::Out* out;
  Index columns;
  unsigned thread;
  unsigned head = Types::kIsAligned ? 0 : at_most(columns, elements_before_alignment<sizeof(InPack)>(in));
  Index first = thread, end = (columns - head) / kPack;
  unsigned singles = head + static_cast<unsigned>((columns - head) % kPack);

  __device__ const InPack* address(Index p) const { return reinterpret_cast<const InPack*>(in + head) + p; }
  __device__ InPack load(Index p) const { return *address(p); }

  /// The place of the results of the first whole pack. It is aligned as a pack if results are in step with elements.
  __device__ typename Types::Out* results() const { return out + head; }
  __device__ bool is_in_step() const {
    return Types::kIsAligned || elements_behind_alignment<sizeof(typename Types::OutPack)>(results()) == 0;
  }

  /// Elements before the row, of the pack that it begins in.
  __device__ unsigned elements_before() const {
    return Types::kIsAligned ? 0 : elements_behind_alignment<sizeof(InPack)>(in);
  }

  /// Packs before the whole ones: the one that the row begins in, if it begins within a pack.
  __device__ unsigned packs_before() const { return elements_before() > 0 ? 1 : 0; }

  /// Parts begin with tree chunks, not with lines of the output: the first with the pack that the row begins in.
  template <unsigned>
  __device__ unsigned packs_behind_line() const { return packs_before(); }

  /// The tree chunks from the first one on, of which all packs are whole but for the one that the row begins in.
  __device__ Index whole_tree_chunks() const { return (columns - head) / kChunkElements<typename Types::In>; }

  __device__ bool has_single() const { return thread < singles; }
  __device__ Index single() const { return thread < head ? thread : columns - singles + thread; }
  __device__ typename Types::In load_single() const { return has_single() ? in[single()] : typename Types::In(); }
  __device__ void write_singles(const auto& results, const typename Types::In& element) const {
    if (has_single()) out[single()] = results.of(element);
  }
};

/// The rows of a call.
template <class Types, unsigned kThreads>
struct CanonicalHeldRows {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Arguments = typename Types::Arguments;
  using InPack = typename Types::InPack;
  using GuessedPowers = typename Types::GuessedPowers;
  using Row = CanonicalHeldRow<Types, kThreads>;
  static constexpr unsigned kTreeChunk = kChunkElements<typename Types::In>;
  static constexpr unsigned kTreeChunkPacks = kTreeChunk / Types::kPack;
  static constexpr unsigned kPaddingPacks = Types::kIsAligned ? 0 : 8;  ///< a line

  const Arguments& arguments;
  unsigned rows = static_cast<unsigned>(arguments.rows);

  template <unsigned>
  __device__ Row row(unsigned r, unsigned thread) const {
    return {softmax_input<Types>(arguments, r), softmax_output<Types>(arguments, r),
            static_cast<Index>(arguments.columns), thread};
  }
  __device__ Acc factor() const { return arguments.scale.factor; }
  __device__ GuessedPowers guessed() const { return {arguments.guessed, factor()}; }
  __device__ unsigned part_tree_chunks() const { return arguments.part_packs / kTreeChunkPacks; }

  /// The number in a row of the first tree chunk of the block's part.
  __device__ Index first_tree_chunk() const { return static_cast<Index>(blockIdx.x) * part_tree_chunks(); }

  /// How many of `chunks` tree chunks of a row the block's part has.
  __device__ unsigned of_part(Index chunks) const {
    const Index first = first_tree_chunk();
    return chunks < first ? 0 : at_most(chunks - first, part_tree_chunks());
  }
  __device__ unsigned tree_chunks() const {
    return of_part((static_cast<Index>(arguments.columns) + kTreeChunk - 1) / kTreeChunk);
  }

  /// Where the sums of the block's tree chunks of row r are.
  __device__ Acc* chunk_sums(unsigned r) const {
    const unsigned slots = arguments.slots + arguments.passing_slots;
    return reinterpret_cast<Acc*>(dynamic_smem + slots * (arguments.slot_packs + kPaddingPacks) * sizeof(InPack)) +
           (r & (arguments.kept_rows - 1)) * part_tree_chunks();
  }
};

}  // namespace hone
