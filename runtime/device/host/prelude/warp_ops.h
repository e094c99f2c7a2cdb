// Barriers and warp operations: calls into the engine, each with the source line that it was made from.
#pragma once

namespace hone_host {

/// A value of 4 or 8 bytes as 64 bits and back; the engine moves bits and knows no types.
template <class T>
unsigned long long to_bits(T value) {
  if constexpr (sizeof(T) == 8) return __builtin_bit_cast(unsigned long long, value);
  else return __builtin_bit_cast(unsigned, value);
}

template <class T>
T from_bits(unsigned long long bits) {
  if constexpr (sizeof(T) == 8) return __builtin_bit_cast(T, bits);
  else return __builtin_bit_cast(T, static_cast<unsigned>(bits));
}

inline WarpCall run_warp_op(WarpCall call) {
  this_block().services->warp_op(&call);
  return call;
}

template <class T>
T shuffle(WarpOp op, unsigned mask, T value, int argument, int width, Site site) {
  return from_bits<T>(run_warp_op({op, mask, sizeof(T), argument, width, to_bits(value), 0, 0, site}).result);
}

template <class T>
T vote(WarpOp op, unsigned mask, T value, Site site) {
  return from_bits<T>(run_warp_op({op, mask, sizeof(T), 0, warpSize, to_bits(value), 0, 0, site}).result);
}

/// `all_equal` is set by match_all alone.
template <class T>
unsigned match(WarpOp op, unsigned mask, T value, int* all_equal, Site site) {
  const WarpCall call = run_warp_op({op, mask, sizeof(T), 0, warpSize, to_bits(value), 0, 0, site});
  if (all_equal != nullptr) *all_equal = call.all_match;
  return static_cast<unsigned>(call.result);
}

inline unsigned lane_in_warp() {
  const BlockView& block = this_block();
  const Index3& t = block.lane->thread;
  return (t.x + block.block_extent.x * (t.y + block.block_extent.y * t.z)) % 32;
}

}  // namespace hone_host

// --- the whole block ---

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::this_block().services->barrier(hone_host::BarrierOp::sync, false, {file, line});
}
inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::this_block().services->barrier(hone_host::BarrierOp::count, predicate != 0, {file, line});
}
inline int __syncthreads_and(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::this_block().services->barrier(hone_host::BarrierOp::all, predicate != 0, {file, line});
}
inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::this_block().services->barrier(hone_host::BarrierOp::any, predicate != 0, {file, line});
}

// --- one warp ---

inline void __syncwarp(unsigned mask = 0xffffffffu, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::vote(hone_host::WarpOp::sync, mask, 0, {file, line});
}

/// Only the calling lane: the smallest answer that CUDA allows, since it promises no convergence. A kernel that uses
/// it as "the lanes that came this way" gives wrong results here, as it may on a GPU.
inline unsigned __activemask() { return 1u << hone_host::lane_in_warp(); }

// Overloads, as CUDA has them, and no templates: a char or a short becomes an int.
#define HONE_HOST_OF_TYPE(type)                                                                                       \
  inline type __shfl_sync(unsigned mask, type value, int source, int width = warpSize,                               \
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {                        \
    return hone_host::shuffle(hone_host::WarpOp::shuffle_index, mask, value, source, width, {file, line});           \
  }                                                                                                                  \
  inline type __shfl_up_sync(unsigned mask, type value, unsigned delta, int width = warpSize,                        \
                             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {                     \
    return hone_host::shuffle(hone_host::WarpOp::shuffle_up, mask, value, static_cast<int>(delta), width,            \
                              {file, line});                                                                         \
  }                                                                                                                  \
  inline type __shfl_down_sync(unsigned mask, type value, unsigned delta, int width = warpSize,                      \
                               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {                   \
    return hone_host::shuffle(hone_host::WarpOp::shuffle_down, mask, value, static_cast<int>(delta), width,          \
                              {file, line});                                                                         \
  }                                                                                                                  \
  inline type __shfl_xor_sync(unsigned mask, type value, int lane_mask, int width = warpSize,                        \
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {                    \
    return hone_host::shuffle(hone_host::WarpOp::shuffle_xor, mask, value, lane_mask, width, {file, line});          \
  }                                                                                                                  \
  inline unsigned __match_any_sync(unsigned mask, type value, const char* file = __builtin_FILE(),                   \
                                   int line = __builtin_LINE()) {                                                    \
    return hone_host::match(hone_host::WarpOp::match_any, mask, value, nullptr, {file, line});                       \
  }                                                                                                                  \
  inline unsigned __match_all_sync(unsigned mask, type value, int* predicate, const char* file = __builtin_FILE(),   \
                                   int line = __builtin_LINE()) {                                                    \
    return hone_host::match(hone_host::WarpOp::match_all, mask, value, predicate, {file, line});                     \
  }
HONE_HOST_OF_TYPE(int)
HONE_HOST_OF_TYPE(unsigned)
HONE_HOST_OF_TYPE(long)
HONE_HOST_OF_TYPE(unsigned long)
HONE_HOST_OF_TYPE(long long)
HONE_HOST_OF_TYPE(unsigned long long)
HONE_HOST_OF_TYPE(float)
HONE_HOST_OF_TYPE(double)
#undef HONE_HOST_OF_TYPE

inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::vote_any, mask, predicate, {file, line});
}
inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::vote_all, mask, predicate, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  return static_cast<unsigned>(hone_host::vote(hone_host::WarpOp::ballot, mask, predicate, {file, line}));
}

inline int __reduce_add_sync(unsigned mask, int value, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_add, mask, value, {file, line});
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_add, mask, value, {file, line});
}
inline int __reduce_min_sync(unsigned mask, int value, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_min_signed, mask, value, {file, line});
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_min_unsigned, mask, value, {file, line});
}
inline int __reduce_max_sync(unsigned mask, int value, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_max_signed, mask, value, {file, line});
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_max_unsigned, mask, value, {file, line});
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_and, mask, value, {file, line});
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_or, mask, value, {file, line});
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  return hone_host::vote(hone_host::WarpOp::reduce_xor, mask, value, {file, line});
}
