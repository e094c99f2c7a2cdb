// The parts that calls share: the inputs, the stream, and the array that the results go to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/array.h"
#include "src/calls.h"
#include "src/layout.h"

namespace hone::python {

/// The stream that the caller chose; nothing: the current one of the array's library.
std::optional<void*> chosen_stream(nb::handle stream);

/// "(3, 4)".
std::string text_of(const Shape& shape);

/// The caller's array for results, if there is one.
std::optional<Array> given_out(nb::handle out);

/// Checks the caller's array for results, or makes one where there is none. `dtype` is what the call writes.
const Array& results_of(const Array& in, std::optional<Array>& out, const Shape& shape, std::int32_t dtype);

/// Raises the ValueError for strides that no kernel takes. `or_else`: what the caller may do instead, for an input of a
/// call.
[[noreturn]] void refuse_strides(const char* name, const char* or_else = "");

/// A contiguous copy of an array whose strides no kernel takes, if the caller allows it; else raises ValueError.
/// `order` is None, or the order of the copy's axes.
Array copy_of(const Array& array, const char* name, const CallOptions& options, nb::handle order = nb::none());

void need_contiguous(const Array& array, const char* name);

/// The largest power of two that divides the address, up to 16.
std::uint32_t alignment_of(const void* pointer);

/// The array's elements; for an empty array, whose address may be null, any aligned address.
const void* elements_of(const Array& array);

/// An array with a description of it that `describe` finds; where it finds none, that of a copy, if the caller asked.
template <class Describe>
auto described(Array& array, const char* name, const CallOptions& options, const Describe& describe) {
  auto found = describe(array);
  if (!found) {
    array = copy_of(array, name, options);
    found = describe(array);
    if (!found) throw nb::value_error("no kernel takes axes with others between them at once");
  }
  return *found;
}

/// The array, or a contiguous copy where the caller allows it.
void make_contiguous(Array& array, const char* name, const CallOptions& options);

/// A struct as its init function of the library makes it, which is asked once for each type.
template <class Spec>
const Spec& defaults_of(hone_status (*init)(Spec*, std::size_t)) {
  static const Spec defaults = [init] {
    Spec made;
    check(init(&made, sizeof made));
    return made;
  }();
  return defaults;
}

/// The problem that `make` has the library make.
template <class Make>
Problem problem_of(const Make& make) {
  hone_problem* problem = nullptr;
  check(make(&problem));
  return Problem(problem);
}

}  // namespace hone::python
