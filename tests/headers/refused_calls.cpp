// Calls that must not compile, one for each HONE_REFUSED_… that CMakeLists.txt defines; without any, all is well.
#include <cstdint>
#include <tuple>

#include <hone/hone.h>

void call(hone::Session& session, const float* floats, const std::int32_t* integers, float* to_float, double* to_double,
          std::int64_t* to_integer, bool* to_bool) {
  const hone::Stream stream = nullptr;
  hone::tuned_reduce(session, hone::sum, floats, 5, to_double, stream);
  hone::tuned_dot(session, integers, integers, 5, to_integer, stream);
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::any), floats, 5, std::tuple(to_float, to_bool), stream);
#if defined(HONE_REFUSED_dtype)
  hone::tuned_reduce(session, hone::logsumexp, integers, 5, to_double, stream);
#elif defined(HONE_REFUSED_result)
  hone::tuned_reduce(session, hone::sum, floats, 5, to_integer, stream);
#elif defined(HONE_REFUSED_element)
  hone::tuned_reduce(session, hone::sum, reinterpret_cast<const char*>(floats), 5, to_float, stream);
#elif defined(HONE_REFUSED_second_array)
  hone::tuned_reduce(session, hone::dot, floats, 5, to_float, stream);
#elif defined(HONE_REFUSED_two_results)
  hone::tuned_reduce_and_wait(session, hone::minmax, floats, 5, stream);
#elif defined(HONE_REFUSED_fused_dot)
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::dot), floats, 5, std::tuple(to_float, to_float), stream);
#elif defined(HONE_REFUSED_fused_result)
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::any), floats, 5, std::tuple(to_float, to_float), stream);
#elif defined(HONE_REFUSED_fused_count)
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::any), floats, 5, std::tuple(to_float), stream);
#elif defined(HONE_REFUSED_no_device)
  hone::Session without_device(nullptr);
#endif
}
