// Atomics, fences and the loads and stores with a cache hint. What touches memory is always inlined, so that the
// report of an access that faults has the line that calls it.
#pragma once

namespace hone_host {

/// A lane runs undisturbed until it meets others, so one that spins on a flag would spin for ever: every so often the
/// engine looks at the clock and lets other lanes run. The counter is the engine's, hence no race of the kernel.
__attribute__((no_sanitize("thread"))) inline void count_poll(Site site) {
  BlockView& block = this_block();
  if (++block.polls % 4096 == 0) block.services->poll(site);
}

/// Relaxed, as CUDA's are: ordering is what __threadfence() is for, and a race checker must see when it is missing.
template <class T, class Change> __forceinline__
T atomic_update(T* address, Change change, Site site) {
  count_poll(site);
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  T next = change(old);
  while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) next = change(old);
  return old;
}

template <class T>
concept AtomicInteger = __is_same(T, int) || __is_same(T, unsigned) || __is_same(T, unsigned long long) ||
                        __is_same(T, long long) || __is_same(T, unsigned long) || __is_same(T, long);
template <class T>
concept AtomicFloat = __is_same(T, float) || __is_same(T, double);

/// Keeps a parameter out of template argument deduction, so that atomicAdd(&counter, 1) takes the counter's type.
template <class T>
struct Identity {
  using type = T;
};
template <class T>
using Same = typename Identity<T>::type;

}  // namespace hone_host

template <hone_host::AtomicInteger T> __forceinline__
T atomicAdd(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <hone_host::AtomicFloat T> __forceinline__
T atomicAdd(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::atomic_update(address, [value](T old) { return old + value; }, {file, line});
}
template <hone_host::AtomicInteger T> __forceinline__
T atomicSub(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <class T>
  requires hone_host::AtomicInteger<T> || hone_host::AtomicFloat<T> __forceinline__
T atomicExch(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  T old;
  __atomic_exchange(address, &value, &old, __ATOMIC_RELAXED);
  return old;
}
template <class T>
  requires hone_host::AtomicInteger<T> || __is_same(T, unsigned short) __forceinline__
T atomicCAS(T* address, hone_host::Same<T> expected, hone_host::Same<T> value, const char* file = __builtin_FILE(),
            int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  __atomic_compare_exchange(address, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <hone_host::AtomicInteger T> __forceinline__
T atomicMin(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::atomic_update(address, [value](T old) { return value < old ? value : old; }, {file, line});
}
template <hone_host::AtomicInteger T> __forceinline__
T atomicMax(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return hone_host::atomic_update(address, [value](T old) { return old < value ? value : old; }, {file, line});
}
__forceinline__ unsigned atomicInc(unsigned* address, unsigned limit, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  return hone_host::atomic_update(address, [limit](unsigned old) { return old >= limit ? 0u : old + 1; }, {file, line});
}
__forceinline__ unsigned atomicDec(unsigned* address, unsigned limit, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  return hone_host::atomic_update(
      address, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; }, {file, line});
}
template <hone_host::AtomicInteger T> __forceinline__
T atomicAnd(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <hone_host::AtomicInteger T> __forceinline__
T atomicOr(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <hone_host::AtomicInteger T> __forceinline__
T atomicXor(T* address, hone_host::Same<T> value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}

inline void __threadfence(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  hone_host::this_block().services->fence(hone_host::FenceScope::device);
}
inline void __threadfence_block(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::count_poll({file, line});
  hone_host::this_block().services->fence(hone_host::FenceScope::block);
}
inline void __threadfence_system(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  __threadfence(file, line);
}
inline void __nanosleep(unsigned, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hone_host::this_block().services->poll({file, line});
}

// A cache hint means nothing here: these are plain loads and stores, and a race checker treats them as such.
template <class T> __forceinline__
T __ldg(const T* address) { return *address; }
template <class T> __forceinline__
T __ldcg(const T* address) { return *address; }
template <class T> __forceinline__
T __ldca(const T* address) { return *address; }
template <class T> __forceinline__
T __ldcs(const T* address) { return *address; }
template <class T> __forceinline__
T __ldlu(const T* address) { return *address; }
template <class T> __forceinline__
T __ldcv(const T* address) { return *static_cast<const volatile T*>(address); }
template <class T> __forceinline__
void __stwb(T* address, hone_host::Same<T> value) { *address = value; }
template <class T> __forceinline__
void __stcg(T* address, hone_host::Same<T> value) { *address = value; }
template <class T> __forceinline__
void __stcs(T* address, hone_host::Same<T> value) { *address = value; }
template <class T> __forceinline__
void __stwt(T* address, hone_host::Same<T> value) { *address = value; }
