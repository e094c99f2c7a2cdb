// Put in front of kernel source on the host device: CUDA's device side as ordinary C++20.
//
// __CUDA_ARCH__ is not defined; HONE_HOST_DEVICE is, for the few places where a template needs a twin of an
// instruction that has no C++ spelling. What is not declared in these files does not compile on the host device.
#pragma once

#include "host_abi.h"

#define HONE_HOST_DEVICE 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

// Shared memory is thread-local: an SM is one OS thread that runs one block at a time, so the module's thread-local
// segment is exactly the block's shared memory. constinit spares `extern` arrays the call of an initialiser; clang
// refuses it on arrays without a value.
#ifdef __clang__
#define __shared__ thread_local
#else
#define __shared__ constinit thread_local
#endif

#include "vector_types.h"

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));
using clock_t = long;

inline constexpr int warpSize = 32;

namespace hone_host {

inline uint3 to_uint3(const Index3& i) { return {i.x, i.y, i.z}; }
inline dim3 to_dim3(const Index3& i) { return {i.x, i.y, i.z}; }

}  // namespace hone_host

// Macros, since CUDA's are variables whose value depends on who asks.
#define threadIdx (::hone_host::to_uint3(::hone_host::this_block().lane->thread))
#define blockIdx (::hone_host::to_uint3(::hone_host::this_block().block))
#define blockDim (::hone_host::to_dim3(::hone_host::this_block().block_extent))
#define gridDim (::hone_host::to_dim3(::hone_host::this_block().grid_extent))

#include "device_math.h"
#include "bit_intrinsics.h"
#include "simd_intrinsics.h"
#include "memory_ops.h"
#include "async_copies.h"
#include "warp_ops.h"

/// Nanoseconds since an arbitrary point; the host device has no clock of its own.
inline long long clock64() { return static_cast<long long>(hone_host::this_block().services->nanoseconds()); }
inline clock_t clock() { return clock64(); }

inline void __trap(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::this_block().services->trap({file, line});
}

#undef assert
#ifdef NDEBUG
#define assert(...) static_cast<void>(0)
#else
#define assert(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) \
                 : ::hone_host::this_block().services->assertion_failed(#__VA_ARGS__, {__FILE__, __LINE__}))
#endif

// Inline assembly is a GPU's; this one's assembler would complain about it later. System headers spell it __asm__.
#define asm \
  _Pragma(  \
      "GCC error \"inline PTX (asm) is not supported on the host device: #ifdef HONE_HOST_DEVICE, write C++\"") __asm

namespace hone_host {

template <int... kIndices>
struct Indices {};
template <int kCount, int... kIndices>
struct CountTo : CountTo<kCount - 1, kCount - 1, kIndices...> {};
template <int... kIndices>
struct CountTo<0, kIndices...> {
  using type = Indices<kIndices...>;
};

/// Calls a kernel with arguments that lie in memory, one pointer per parameter.
template <auto* kKernel>
struct Trampoline;
template <class... Parameters, void (*kKernel)(Parameters...)>
struct Trampoline<kKernel> {
  static_assert((sizeof(Parameters) + ... + 0) <= kMostParameterBytes, "hone::Arguments holds no more");

  template <int... kIndices>
  static void unpack(void* const* arguments, Indices<kIndices...>) {
    kKernel(*static_cast<Parameters*>(arguments[kIndices])...);
  }
  static void call(void* const* arguments) { unpack(arguments, typename CountTo<sizeof...(Parameters)>::type{}); }
  static constexpr int kParameters = sizeof...(Parameters);
  static constexpr int kParameterBytes[kParameters + 1] = {static_cast<int>(sizeof(Parameters))..., 0};
};

}  // namespace hone_host
