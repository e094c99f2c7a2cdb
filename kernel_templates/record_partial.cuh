// A rank adds this to the block of its partials before blocks are exchanged: the number of its elements; for argmin and
// argmax also the indices, with the elements there.
//
// A grid-stride loop over rows, one thread each.
#pragma once

#include "combine_arguments.h"
#include "grid.cuh"

namespace hone {

template <class In, bool kLocates>
struct RecordPartial {
  static __device__ void run(const RecordArguments& all) {
    pdl_release_then_wait();
    const unsigned long long first = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
    if (first == 0) *all.count = static_cast<long long>(all.columns);
    if constexpr (kLocates) {
      const unsigned long long stride = gridDim.x * static_cast<unsigned long long>(blockDim.x);
      for (unsigned long long row = first; row < all.rows; row += stride) {
        // An index of nothing has no element: there are no columns, or all of them are NaN and ignored.
        const long long index = all.columns == 0 ? -1 : all.found[row];
        all.indices[row] = index;
        if (index >= 0)
          static_cast<In*>(all.values)[row] =
              static_cast<const In*>(all.in)[static_cast<long long>(row) * all.pitch + index];
      }
    }
  }
};

}  // namespace hone
