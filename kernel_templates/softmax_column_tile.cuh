// Tiles of columns for softmax_columns.cuh: how outer × reduced × inner is divided among blocks and threads.
#pragma once

#include "softmax_sums.cuh"
#include "streaming.cuh"

namespace hone {

/// kElements: columns per pack.
template <class In, class Out, class Acc, bool kLog, unsigned kElements>
using ColumnTypes = SoftmaxPackTypes<In, Out, Acc, long long, kLog, kElements, kElements>;

/// A tile of neighbouring columns, and the rows first, first + stride, … < end of one thread in it.
template <class Types_, unsigned kBlockThreads, unsigned kLanes>
struct SoftmaxColumnTile {
  using Types = Types_;
  using In = typename Types::In;
  using Out = typename Types::Out;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Sums = SoftmaxSums<Types>;
  using Scale = typename Types::Scale;
  using Arguments = SoftmaxColumnsArguments<typename Types::Acc>;
  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = kLanes * kElements;
  static constexpr unsigned kRowLanes = kBlockThreads / kLanes;  ///< threads per column
  static_assert(kBlockThreads % kLanes == 0 && kBlockThreads % 32 == 0);

  const Arguments& all;
  const In* in;  ///< this thread's pack in the first row
  Out* out;
  long long first, end, stride;

  __device__ SoftmaxColumnTile(const Arguments& all_, long long tile, long long first_row, long long end_row,
                               long long stride_)
      : all(all_), first(first_row), stride(stride_) {
    const long long tiles = (all.inner + kColumns - 1) / kColumns;
    const long long outer = tile / tiles;
    const long long column = (tile - outer * tiles) * kColumns + threadIdx.x % kLanes * kElements;
    in = static_cast<const In*>(all.in) + (outer * all.reduced * all.in_pitch + column);
    out = static_cast<Out*>(all.out) + (outer * all.reduced * all.out_pitch + column);
    end = column < all.inner ? end_row : first_row;
  }

  static __device__ long long tiles_of(const Arguments& all) {
    return all.outer * ((all.inner + kColumns - 1) / kColumns);
  }

  /// One of `chunks` chunks of the rows of a tile, for one block.
  static __device__ SoftmaxColumnTile chunk_of(const Arguments& all, long long tile, unsigned chunk) {
    const long long each = (all.reduced + all.chunks - 1) / all.chunks;
    const long long first = chunk * each;
    const long long end = first + each < all.reduced ? first + each : all.reduced;
    return {all, tile, first + threadIdx.x / kLanes, end, kRowLanes};
  }

  __device__ long long after(long long row, unsigned k) const { return row + k * stride; }

  __device__ InPack load(long long row) const { return *reinterpret_cast<const InPack*>(in + row * all.in_pitch); }
  __device__ InPack load_again(long long row) const { return load(row); }
  __device__ void store(long long row, const OutPack& pack) const {
    store_streaming(reinterpret_cast<OutPack*>(out + row * all.out_pitch), pack);
  }

  /// Columns have no elements outside of packs.
  __device__ Sums start(const Scale& scale) const { return Sums(scale); }
  __device__ void add_singles(Sums&, const Scale&) const {}
  __device__ void write_singles(const SoftmaxResults<Types>&) const {}
};

}  // namespace hone
