// The rows of a softmax, as the packs and single elements of one thread.
#pragma once

#include "pack_range.cuh"
#include "softmax_shares.cuh"

namespace hone {

/// kAligned_: every row starts at a multiple of a pack, in the input and in the output.
template <class In, class Out, class Acc, class Index, bool kLog, bool kAligned_>
struct SoftmaxTypes
    : SoftmaxPackTypes<In, Out, Acc, Index, kLog, 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out)), 1> {
  static constexpr bool kAligned = kAligned_;
};

/// The packs first, first + kThreads, … < end of a row, and its single elements, for one of kThreads threads. Single
/// elements are few, and none in most rows. Of enough threads each has one at most, and holds it; fewer load them again
/// each time.
template <class Types, unsigned kThreads>
struct SoftmaxRow {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Scale = typename Types::Scale;
  using Range = PackRange<OneArray<typename Types::In, Types::kElements>, Index>;
  using Single = SoftmaxSingle<typename Types::In>;
  static constexpr bool kOneSingle = kThreads >= 2 * Types::kElements;

  const typename Types::In* in;
  typename Types::Out* out;
  Index columns;
  unsigned thread;
  Range range = Range::template of<!Types::kAligned>({in}, columns);
  /// Input and output have the same alignment.
  bool in_step = elements_before_alignment<sizeof(InPack)>(in) == elements_before_alignment<sizeof(OutPack)>(out);
  Index first = thread, end = range.packs;
  Index singles = range.singles();  ///< that belong to the chunk

  /// Chunk `part` of the `parts` chunks of the row. The single elements belong to the first.
  __device__ SoftmaxRow chunk(unsigned part, unsigned parts) const {
    SoftmaxRow chunk = *this;
    const Index each = (range.packs + parts - 1) / parts;
    chunk.first += static_cast<Index>(part) * each;
    chunk.end = static_cast<Index>(part + 1) * each < range.packs ? static_cast<Index>(part + 1) * each : range.packs;
    if (part != 0) chunk.singles = 0;
    return chunk;
  }

  __device__ Index after(Index p, unsigned k) const { return p + static_cast<Index>(k) * kThreads; }

  __device__ InPack load(Index p) const { return *address(p); }
  __device__ InPack load_again(Index p) const { return load_streaming(address(p)); }
  __device__ const InPack* address(Index p) const { return reinterpret_cast<const InPack*>(in + range.head) + p; }

  /// The packs from the last address of the output that begins a line of kLinePacks to its first pack.
  template <unsigned kLinePacks>
  __device__ unsigned packs_behind_line() const {
    return elements_behind_alignment<kLinePacks * sizeof(OutPack)>(out + range.head) / Types::kElements;
  }

  __device__ void store(Index p, const OutPack& pack) const {
    if (Types::kAligned || in_step) {
      store_streaming(reinterpret_cast<OutPack*>(out + range.head) + p, pack);
    } else {
      unrolled<Types::kElements>([&](unsigned e) { out[range.head + p * Types::kElements + e] = pack[e]; });
    }
  }

  /// The single element that the thread holds. Called while other loads are in flight, its own takes no time.
  __device__ Single load_single() const {
    Single single{.is_held = kOneSingle && thread < singles};
    if (single.is_held) single.element = in[range.single(thread)];
    return single;
  }

  /// The State before any pack is added: the heaviest single element, without its weight.
  __device__ SoftmaxSums<Types> start(const Scale& scale, const Single& single) const {
    SoftmaxSums<Types> sums(scale);
    for_singles(single, [&](Index, Acc x) { sums.heaviest[0] = scale.heavier(sums.heaviest[0], x); });
    return sums;
  }

  __device__ void add_singles(SoftmaxSums<Types>& sums, const Scale& scale, const Single& single) const {
    const SoftmaxWeights<Acc> weights(sums.heaviest[0], scale);
    Acc sum(0);
    for_singles(single, [&](Index, Acc x) { sum += weights.of(x); });
    sums.sum[0] += sum;
  }

  __device__ void write_singles(const SoftmaxResults<Types>& results, const Single& single) const {
    for_singles(single, [&](Index i, Acc x) { out[i] = convert<typename Types::Out>(results.of[0].of(x)); });
  }

 private:
  /// Calls act(position, element) for the single elements of the thread. Without a loop, clusters of f32 with 8 packs a
  /// thread take 94 registers, not 72, and if the last threads have the single elements 80 (NVRTC of CUDA 13.0, sm_90).
  __device__ void for_singles(const Single& single, const auto& act) const {
#pragma unroll 1
    for (Index i = thread; i < singles; i += kThreads)
      act(range.single(i), convert<Acc>(kOneSingle ? single.element : in[range.single(i)]));
  }
};

/// The rows of a call.
template <class Types>
struct SoftmaxRows {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Index = typename Types::Index;
  using Arguments = SoftmaxArguments<typename Types::Acc>;

  const Arguments& arguments;
  Index rows = static_cast<Index>(arguments.rows), columns = static_cast<Index>(arguments.columns);
  typename Types::Scale scale{arguments.scale};

  __device__ const In* in(Index r) const {
    return static_cast<const In*>(arguments.in) + static_cast<long long>(r) * arguments.in_pitch;
  }
  __device__ Out* out(Index r) const {
    return static_cast<Out*>(arguments.out) + static_cast<long long>(r) * arguments.out_pitch;
  }

  /// Row r, for one of kThreads threads; behind the last row, an empty one.
  template <unsigned kThreads>
  __device__ SoftmaxRow<Types, kThreads> row(Index r, unsigned thread) const {
    if (r >= rows) return {in(0), out(0), 0, thread};
    return {in(r), out(r), columns, thread};
  }
};

}  // namespace hone
