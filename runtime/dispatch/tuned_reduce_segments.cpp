#include <hone/segmented_reduce.h>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {
namespace {

/// A call as messages name it.
struct SegmentsCall {
  std::string_view op, dtype;
  std::int64_t elements, segments;

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("tuned_reduce_segments({} {}, {} elements, {} segments): {}",
                                                         op, dtype, elements, segments, why));
  }
};

/// Values that were cast from elsewhere may name nothing.
void require_known(const ReduceSpec& spec) {
  const auto unknown = [](std::string_view what, int value) {
    throw Error(ErrorCode::invalid_argument, fmt::format("tuned_reduce_segments: there is no {} {}", what, value));
  };
  if (static_cast<std::size_t>(spec.op) >= kReduceOps.size()) unknown("operation", static_cast<int>(spec.op));
  for (DType dtype : {spec.dtype, spec.accumulator.value_or(spec.dtype), spec.result.value_or(spec.dtype)})
    if (static_cast<std::size_t>(dtype) >= kDTypes.size()) unknown("dtype", static_cast<int>(dtype));
}

void check_array(const SegmentsCall& call, std::string_view name, const void* pointer, bool is_needed, DType dtype) {
  if (!pointer && is_needed) call.refuse(fmt::format("'{}' is null; pass device memory", name));
  const std::size_t bytes = info(dtype).size_bytes;
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0)
    call.refuse(fmt::format("'{}' at {} is not aligned to its {}-byte elements", name, pointer, bytes));
}

}  // namespace

Choice tuned_reduce_segments(Session& session, const ReduceSpec& spec, const void* in, std::int64_t elements,
                             const void* offsets, DType offset_dtype, std::int64_t segments, void* out, Stream stream) {
  require_known(spec);
  const Problem problem = segmented_reduce_problem(spec, offset_dtype, segments, elements);
  const SegmentsCall call{name(spec.op), info(spec.dtype).name, elements, segments};
  if (info(spec.op).inputs != 1) call.refuse("takes two arrays; there is no segmented one");
  if (elements < 0) call.refuse("a number of elements cannot be negative");
  if (segments < 0) call.refuse("a number of segments cannot be negative");
  check_array(call, "in", in, elements > 0, spec.dtype);
  check_array(call, "offsets", offsets, true, offset_dtype);
  check_array(call, "out", out, segments > 0, spec.result_dtype());
  // Of an empty array nothing is read or written, and any address will do.
  void* const unused = const_cast<void*>(offsets);
  void* const buffers[] = {elements == 0 ? unused : const_cast<void*>(in), unused, segments == 0 ? unused : out};
  return session.launch(problem, buffers, stream);
}

}  // namespace hone
