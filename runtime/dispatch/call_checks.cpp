#include "runtime/dispatch/call_checks.h"

#include <algorithm>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"

namespace hone {

void refuse_call(std::string_view call, std::string_view why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", call, why));
}

void require_known(std::string_view function, std::initializer_list<DType> dtypes) {
  for (const DType dtype : dtypes)
    if (static_cast<std::size_t>(dtype) >= kDTypes.size())
      refuse_call(function, fmt::format("there is no dtype {}", static_cast<int>(dtype)));
}

void require_known(std::string_view function, const ReduceSpec& spec) {
  if (static_cast<std::size_t>(spec.op) >= kReduceOps.size())
    refuse_call(function, fmt::format("there is no operation {}", static_cast<int>(spec.op)));
  require_known(function, {spec.dtype, spec.accumulator.value_or(spec.dtype), spec.result.value_or(spec.dtype)});
}

std::string address_fault(std::string_view name, const void* pointer, std::size_t alignment) {
  if (!pointer) return fmt::format("'{}' is null; pass device memory", name);
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return "";
  return fmt::format("'{}' at {} is not aligned to {} bytes; copy the array to memory that is", name, pointer,
                     alignment);
}

void Call::refuse(std::string_view why) const {
  refuse_call(fmt::format("{}({})", function, to_string(problem)), why);
}

void Call::check_array(std::string_view name, const void* pointer, DType dtype, bool is_needed,
                       std::size_t alignment) const {
  if (!pointer && !is_needed) return;
  const std::string fault = address_fault(name, pointer, std::max(alignment, info(dtype).size_bytes));
  if (!fault.empty()) refuse(fault);
}

void Call::check_apart(std::string_view a_name, const ArrayRows& a, std::string_view b_name, const ArrayRows& b,
                       bool may_be_same) const {
  if (!rows_overlap(a, b)) return;
  check_problem();  // sizes that the family refuses overlap often
  refuse(fmt::format("'{}' at {} and '{}' at {} overlap; pass {}arrays apart", a_name, a.first, b_name, b.first,
                       may_be_same ? "the same address, or " : ""));
}

void Call::check_problem() const {
  if (const std::string refusal = refusal_of(problem); !refusal.empty()) refuse_call(function, refusal);
}

ArrayRows side_by_side(const void* first, std::int64_t count, DType dtype, std::int64_t each) {
  const std::int64_t element_bytes = each * bytes_of(dtype);
  const std::int64_t bytes = count <= kMostBytes / element_bytes ? count * element_bytes : 0;
  return {first, bytes, bytes, 1};
}

ArrayRows rows_of(const Problem& problem, int array, const void* first) {
  const Rows rows = static_cast<const BuiltInFamily&>(*problem.family).rows(problem, array);
  const std::int64_t bytes =
      rows.parts * bytes_of(array == 0 ? problem.dtype : problem.result.value_or(problem.dtype));
  return {first, rows.length * bytes, rows.pitch * bytes, rows.batch * rows.rows};
}

bool rows_overlap(const ArrayRows& a, const ArrayRows& b) {
  for (const ArrayRows& array : {a, b})
    if (array.rows == 0 || array.row_bytes == 0) return false;
  const auto a_first = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.first));
  const auto b_first = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(b.first));
  const std::int64_t a_end = a_first + (a.rows - 1) * a.pitch_bytes + a.row_bytes;
  const std::int64_t b_end = b_first + (b.rows - 1) * b.pitch_bytes + b.row_bytes;
  if (a_end <= b_first || b_end <= a_first) return false;
  if (a.rows == 1 && b.rows == 1) return true;
  // A row alone has the pitch of the others. Rows of one pitch interleave if those of b lie in the gaps of a.
  const std::int64_t pitch = a.rows == 1 ? b.pitch_bytes : a.pitch_bytes;
  if (b.rows != 1 && b.pitch_bytes != pitch) return true;
  const std::int64_t distance = ((b_first - a_first) % pitch + pitch) % pitch;
  return distance < a.row_bytes || distance + b.row_bytes > pitch;
}

}  // namespace hone
