// Stream: CUDA's stream handle, without CUDA's headers.
#pragma once

struct CUstream_st;

namespace hone {

/// The same type as cudaStream_t, so that a caller's stream passes through unchanged. nullptr is the device's
/// default stream. The host device runs everything at once and accepts any value.
using Stream = CUstream_st*;

}  // namespace hone
