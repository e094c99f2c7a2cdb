// kSanitized: whether this is a build with AddressSanitizer or ThreadSanitizer.
#pragma once

namespace hone::test {

/// The sanitizers see what is wrong in any order of threads, and are slow: tests of kernels do with one order there,
/// and with fewer combinations.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace hone::test
