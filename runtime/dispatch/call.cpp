#include <hone/call.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>
#include <hone/session.h>

#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

/// A call under way, as messages name it.
struct Call {
  std::string_view function;
  const Problem& problem;

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}({}): {}", function, to_string(problem), why));
  }

  void check(const CallArray& array) const {
    if (!array.pointer) refuse(fmt::format("'{}' is null; pass device memory", array.name));
    if (const std::string why = misalignment(array.name, array.pointer, problem.dtype); !why.empty()) refuse(why);
  }

  void check_apart(const CallArray& output, const CallArray& other, bool may_replace) const {
    if (may_replace && output.pointer == other.pointer) return;
    if (rows_overlap(rows_of(output), rows_of(other)))
      refuse(fmt::format("'{}' at {} and '{}' at {} overlap; pass {}arrays apart", other.name, other.pointer,
                         output.name, output.pointer, may_replace ? "the same address, or " : ""));
  }

 private:
  ArrayRows rows_of(const CallArray& array) const {
    const auto bytes = static_cast<std::int64_t>(info(problem.dtype).size_bytes);
    return {array.pointer, array.columns * bytes, array.pitch * bytes, array.rows};
  }
};

}  // namespace

Choice launch_call(Session& session, std::string_view function, const Problem& problem,
                   std::span<const CallArray> arrays, Stream stream) {
  require_known(function, problem.dtype);
  const Call call{function, problem};
  if (const std::string why = problem.family->refuse(problem); !why.empty()) call.refuse(why);
  if (std::ranges::find(problem.extents, 0) != problem.extents.end()) return {};
  std::array<void*, 8> buffers{};
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    call.check(arrays[i]);
    buffers.at(i) = const_cast<void*>(arrays[i].pointer);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i)
    for (std::size_t other = 0; arrays[i].is_output && other < i; ++other)
      call.check_apart(arrays[i], arrays[other], arrays[i].may_replace == static_cast<int>(other));
  return session.launch(problem, std::span(buffers).first(arrays.size()), stream);
}

}  // namespace hone
