#include "src/operands.h"

#include <algorithm>

#include "src/given.h"

namespace hone::python {

std::optional<void*> chosen_stream(nb::handle stream) {
  if (stream.is_none()) return std::nullopt;
  const nb::object number = PyLong_Check(stream.ptr()) != 0 ? nb::borrow(stream) : hooks().stream_handle(stream);
  std::uintptr_t address = 0;
  if (!nb::try_cast(number, address)) refuse_given("stream", "a stream or its address", stream);
  return reinterpret_cast<void*>(address);
}

std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.ndim; ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape.size[i]);
  return text + (shape.ndim == 1 ? ",)" : ")");
}

std::optional<Array> given_out(nb::handle out) {
  std::optional<Array> found;
  if (!out.is_none()) found.emplace(out, "out");
  return found;
}

const Array& results_of(const Array& in, std::optional<Array>& given, const Shape& shape, std::int32_t dtype) {
  if (!given) return given.emplace(in.allocate(shape, dtype));
  const Array& out = *given;
  if (out.is_read_only) throw nb::value_error("out is read-only");
  if (out.device != in.device) throw nb::value_error("out is on another device than the array");
  if (!(out.shape == shape)) {
    const std::string message = "out has the shape " + text_of(out.shape) + "; the result's is " + text_of(shape);
    throw nb::value_error(message.c_str());
  }
  if (out.dtype != dtype) {
    const std::string message =
        std::string("out has the dtype ") + hone_dtype_name(out.dtype) + "; the result's is " + hone_dtype_name(dtype);
    throw nb::type_error(message.c_str());
  }
  return out;
}

void refuse_strides(const char* name, const char* or_else) {
  const std::string message =
      std::string(name) + ": no kernel takes these strides for these axes; pass a contiguous array" + or_else;
  throw nb::value_error(message.c_str());
}

Array copy_of(const Array& array, const char* name, const CallOptions& options, nb::handle order) {
  if (!options.copy) refuse_strides(name, ", or copy=True to have it copied");
  // The copy is made in the current stream of the array's library, and freed in its order.
  if (array.device != kHost && !options.stream.is_none())
    throw nb::value_error("copy=True copies in the current stream: make that the one to work in instead of stream=");
  return Array(hooks().contiguous(array.object(), order), name);
}

void need_contiguous(const Array& array, const char* name) {
  if (!array.is_contiguous()) throw nb::value_error((std::string(name) + " must be contiguous").c_str());
}

void make_contiguous(Array& array, const char* name, const CallOptions& options) {
  described(array, name, options,
            [](const Array& given) { return given.is_contiguous() ? std::optional(0) : std::nullopt; });
}

std::uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return address == 0 ? 16 : static_cast<std::uint32_t>(std::min<std::uintptr_t>(address & -address, 16));
}

const void* elements_of(const Array& array) {
  alignas(16) static const char nothing[16] = {};
  return array.shape.elements() == 0 ? nothing : array.data;
}

}  // namespace hone::python
