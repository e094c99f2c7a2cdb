// Stream: CUDA's stream handle, without CUDA's headers.
#pragma once

struct CUstream_st;

namespace hone {

/// The same type as cudaStream_t, so that a caller's stream passes through unchanged. nullptr is the device's
/// default stream. The host device accepts any value and has executed a call when it returns; what several threads call in
/// one stream is executed one after the other there, too.
using Stream = CUstream_st*;

}  // namespace hone
