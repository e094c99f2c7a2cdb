#include <hone/call.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <hone/session.h>

#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

ArrayRows rows_of(const CallArray& array, DType dtype) {
  const auto bytes = static_cast<std::int64_t>(info(dtype).size_bytes);
  return {array.pointer, array.columns * bytes, array.pitch * bytes, array.rows};
}

void check_apart(const Call& call, const CallArray& output, const CallArray& other, bool may_replace) {
  if (may_replace && output.pointer == other.pointer) return;
  call.check_apart(other.name, rows_of(other, call.problem.dtype), output.name, rows_of(output, call.problem.dtype),
                   may_replace);
}

}  // namespace

Choice launch_call(Session& session, std::string_view function, const Problem& problem,
                   std::span<const CallArray> arrays, Stream stream) {
  require_known(function, {problem.dtype});
  const Call call{function, problem};
  call.check_problem();
  if (std::ranges::find(problem.extents, 0) != problem.extents.end()) return {};
  std::array<void*, 8> buffers{};
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    call.check_array(arrays[i].name, arrays[i].pointer, problem.dtype);
    buffers.at(i) = const_cast<void*>(arrays[i].pointer);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i)
    for (std::size_t other = 0; arrays[i].is_output && other < i; ++other)
      check_apart(call, arrays[i], arrays[other], arrays[i].may_replace == static_cast<int>(other));
  return session.launch(problem, std::span(buffers).first(arrays.size()), stream);
}

}  // namespace hone
