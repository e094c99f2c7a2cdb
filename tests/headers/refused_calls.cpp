// Calls that must not compile, with HONE_REFUSED. A comment above each says what the compiler has to print for its
// line, as a regular expression of CMake; refused_calls.cmake compares. Without HONE_REFUSED, all is well.
#include <cstdint>
#include <tuple>

#include <hone/hone.h>

void call(hone::Session& session, const float* floats, const std::int32_t* integers, float* to_float, double* to_double,
          std::int64_t* to_integer, bool* to_bool) {
  const hone::Stream stream = nullptr;
  hone::tuned_reduce(session, hone::sum, floats, 5, to_double, stream);
  hone::tuned_dot(session, integers, integers, 5, to_integer, stream);
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::any), floats, 5, std::tuple(to_float, to_bool), stream);
#if defined(HONE_REFUSED)
  // refused: this reduction is not defined for this element type
  hone::tuned_reduce(session, hone::logsumexp, integers, 5, to_double, stream);
  // refused: cannot be stored as the type of
  hone::tuned_reduce(session, hone::sum, floats, 5, to_integer, stream);
  // refused: Hone has no dtype for this element type
  hone::tuned_reduce(session, hone::sum, reinterpret_cast<const char*>(floats), 5, to_float, stream);
  // refused: use tuned_dot\(\)
  hone::tuned_reduce(session, hone::dot, floats, 5, to_float, stream);
  // refused: there is more than one
  hone::tuned_reduce_and_wait(session, hone::minmax, floats, 5, stream);
  // refused: dot takes two arrays and cannot be fused
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::dot), floats, 5, std::tuple(to_float, to_float), stream);
  // refused: a fused reduction writes
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::any), floats, 5, std::tuple(to_float, to_float), stream);
  // refused: pass one pointer for each reduction
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::any), floats, 5, std::tuple(to_float), stream);
  // refused: use of deleted function|call to deleted
  hone::Session without_device(nullptr);
#endif
}
