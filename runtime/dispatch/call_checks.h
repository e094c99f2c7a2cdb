// Every tuned_…() call checks this before it looks anything up: only what costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <hone/problem.h>
#include <hone/reduce_spec.h>

namespace hone {

/// Throws Error(invalid_argument): "tuned_copy: …". `call`: the function, the problem, or both.
[[noreturn]] void refuse_call(std::string_view call, std::string_view why);

/// Values that were cast from elsewhere may name nothing. Throws Error(invalid_argument).
void require_known(std::string_view function, std::initializer_list<DType> dtypes);
void require_known(std::string_view function, const ReduceSpec& spec);

/// The fault in the address of an array; "" if there is none: it is null, or not aligned to so many bytes.
std::string address_fault(std::string_view name, const void* pointer, std::size_t alignment);

/// The rows of an array, in bytes.
struct ArrayRows {
  const void* first;
  std::int64_t row_bytes, pitch_bytes, rows;
};

/// `count` times `each` elements side by side. More than any memory holds count as none: families refuse them.
ArrayRows side_by_side(const void* first, std::int64_t count, DType dtype, std::int64_t each = 1);

/// The rows of an array at `first`: the input (0) or the output (1) of a built-in family's problem.
ArrayRows rows_of(const Problem& problem, int array, const void* first);

/// True if two arrays may have a byte in common. At equal pitches, rows of one may lie between those of the other; at
/// unequal ones, arrays of several rows overlap as soon as their ranges of addresses do.
bool rows_overlap(const ArrayRows& a, const ArrayRows& b);

/// A call and what it asks for. Checks throw Error(invalid_argument) that names both.
struct Call {
  std::string_view function;
  const Problem& problem;

  [[noreturn]] void refuse(std::string_view why) const;

  /// The address may be that of elements of `dtype`, or of `alignment`; null only where it is not needed.
  void check_array(std::string_view name, const void* pointer, DType dtype, bool is_needed = true,
                   std::size_t alignment = 1) const;

  /// The arrays have no byte in common. `may_be_same`: the advice says that the address may be the same.
  void check_apart(std::string_view a_name, const ArrayRows& a, std::string_view b_name, const ArrayRows& b,
                   bool may_be_same = false) const;

  /// The family takes the problem. On every call where not all of it is in the key that finds a plan: pitches, scalars,
  /// and shapes that overflow in a class whose others do not.
  void check_problem() const;
};

}  // namespace hone
