// Stream: CUDA's stream handle, without CUDA's headers.
#pragma once

struct CUstream_st;

namespace hone {

/// The same type as cudaStream_t, so that a caller's stream can be passed unchanged. nullptr is the default stream of
/// the device. The host device accepts any value and executes a call before it returns; calls of several threads in one
/// stream are executed one after the other there, too.
using Stream = CUstream_st*;

}  // namespace hone
