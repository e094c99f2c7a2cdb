// The rows of a softmax. A row is single elements before the first aligned pack, packs, and single elements after the
// last full pack.
#pragma once

#include "softmax_math.cuh"
#include "streaming.cuh"

namespace hone {

/// The types and compile-time facts of a kernel. kAligned_: every row starts at a multiple of a pack, in the input and
/// in the output.
template <class In_, class Out_, class Acc_, class Index_, bool kLog_, bool kAligned_>
struct SoftmaxTypes {
  using In = In_;
  using Out = Out_;
  using Acc = Acc_;
  using Index = Index_;
  static constexpr bool kLog = kLog_;
  static constexpr bool kAligned = kAligned_;
  static constexpr unsigned kElements = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));  ///< per pack
  using InPack = Pack<In, kElements>;
  using OutPack = Pack<Out, kElements>;
  using State = SoftmaxState<Acc>;
  using Scale = SoftmaxScale<Acc>;
  using Result = SoftmaxResult<Acc, kLog>;

  /// Weights replace their elements if they have the same type, and are then computed only once.
  static constexpr bool kKeepsWeights = !kLog && kSame<In, Acc>;

  static __device__ OutPack result_of(const InPack& pack, const Result& result) {
    OutPack out;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) out.set(e, convert<Out>(result.of(convert<Acc>(pack[e]))));
    return out;
  }
};

template <class Types>
struct Row {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  static constexpr unsigned kElements = Types::kElements;

  const In* in;
  Out* out;
  Index head;     ///< elements before the first pack
  Index packs;
  Index singles;  ///< elements in no pack
  bool in_step;   ///< input and output have the same alignment

  __device__ Row(const In* in_, Out* out_, Index columns) : in(in_), out(out_), head(0), in_step(true) {
    if constexpr (!Types::kAligned && kElements > 1) {
      const unsigned unaligned = elements_before_alignment<sizeof(InPack)>(in);
      in_step = unaligned == elements_before_alignment<sizeof(OutPack)>(out);
      head = unaligned < columns ? unaligned : columns;
    }
    packs = (columns - head) / kElements;
    singles = columns - packs * kElements;
  }

  __device__ const InPack* pack(Index p) const { return reinterpret_cast<const InPack*>(in + head) + p; }

  __device__ void store(Index p, const OutPack& pack) const {
    if (Types::kAligned || in_step) {
      store_streaming(reinterpret_cast<OutPack*>(out + head) + p, pack);
    } else {
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e) out[head + p * kElements + e] = pack[e];
    }
  }

  /// The index of single element `i` in the row.
  __device__ Index single(Index i) const { return i < head ? i : i + packs * kElements; }
};

/// The rows of a call. Pitches count elements.
template <class Types>
struct SoftmaxRows {
  const typename Types::In* in;
  typename Types::Out* out;
  typename Types::Index rows;
  typename Types::Index columns;
  long long in_pitch;
  long long out_pitch;
  typename Types::Scale scale;

  using Arguments = SoftmaxArguments<typename Types::Acc>;

  explicit __device__ SoftmaxRows(const Arguments& arguments)
      : in(static_cast<const typename Types::In*>(arguments.in)),
        out(static_cast<typename Types::Out*>(arguments.out)),
        rows(static_cast<typename Types::Index>(arguments.rows)),
        columns(static_cast<typename Types::Index>(arguments.columns)),
        in_pitch(arguments.in_pitch),
        out_pitch(arguments.out_pitch),
        scale(arguments.scale) {}

  /// Row r; behind the last row, an empty one.
  __device__ Row<Types> row(typename Types::Index r) const {
    if (r >= rows) return {in, out, 0};
    return {in + static_cast<long long>(r) * in_pitch, out + static_cast<long long>(r) * out_pitch, columns};
  }
};

}  // namespace hone
