// Tiles of columns for softmax_columns.cuh: how outer × reduced × inner is divided among blocks and threads.
#pragma once

#include "softmax_math.cuh"
#include "streaming.cuh"

namespace hone {

/// The array of a call. A pitch is the distance, in elements, from one row of `inner` elements to the next.
template <class Types>
struct SoftmaxArray {
  const typename Types::In* in;
  typename Types::Out* out;
  long long outer, reduced, inner;
  long long in_pitch, out_pitch;
  typename Types::Scale scale;

  using Arguments = SoftmaxColumnsArguments<typename Types::Acc>;

  explicit __device__ SoftmaxArray(const Arguments& arguments)
      : in(static_cast<const typename Types::In*>(arguments.in)),
        out(static_cast<typename Types::Out*>(arguments.out)),
        outer(arguments.outer),
        reduced(arguments.reduced),
        inner(arguments.inner),
        in_pitch(arguments.in_pitch),
        out_pitch(arguments.out_pitch),
        scale(arguments.scale) {}
};

/// A tile of neighbouring columns, and the rows of one thread in it.
template <class Types, unsigned kBlockThreads, unsigned kLanes>
struct SoftmaxColumnTile {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Array = SoftmaxArray<Types>;
  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = kLanes * kElements;
  static constexpr unsigned kRowLanes = kBlockThreads / kLanes;  ///< threads per column
  static_assert(kBlockThreads % kLanes == 0 && kBlockThreads % 32 == 0);

  const In* in;  ///< this thread's pack in the first row
  Out* out;
  long long first, end;  ///< this thread's rows: every stride-th one
  long long stride;
  bool has_columns;

  __device__ SoftmaxColumnTile(const Array& all, long long tile, long long first_row, long long end_row,
                               long long stride_) {
    const long long tiles = (all.inner + kColumns - 1) / kColumns;
    const long long outer = tile / tiles;
    const long long column = (tile - outer * tiles) * kColumns + threadIdx.x % kLanes * kElements;
    has_columns = column < all.inner;
    in = all.in + outer * all.reduced * all.in_pitch + column;
    out = all.out + outer * all.reduced * all.out_pitch + column;
    first = first_row;
    end = has_columns ? end_row : first_row;
    stride = stride_;
  }

  __device__ InPack load(const Array& all, long long row) const {
    return *reinterpret_cast<const InPack*>(in + row * all.in_pitch);
  }
  __device__ void store(const Array& all, long long row, const OutPack& pack) const {
    store_streaming(reinterpret_cast<OutPack*>(out + row * all.out_pitch), pack);
  }

  static __device__ long long tiles_of(const Array& all) { return all.outer * ((all.inner + kColumns - 1) / kColumns); }

  /// One of `chunks` chunks of the rows of a tile, for one block.
  static __device__ SoftmaxColumnTile chunk_of(const Array& all, long long tile, unsigned chunk, unsigned chunks) {
    const long long each = (all.reduced + chunks - 1) / chunks;
    const long long first = chunk * each;
    const long long end = first + each < all.reduced ? first + each : all.reduced;
    return {all, tile, first + threadIdx.x / kLanes, end, kRowLanes};
  }
};

}  // namespace hone
