#include "src/kernel.h"

#include <algorithm>

#include <nanobind/stl/string.h>

#include "src/given.h"
#include "src/operands.h"
#include "src/shortcut.h"

namespace hone::python {
namespace {

/// The library's callback needs this: the function of the package, and what it is for.
struct Reference {
  nb::object function;
  std::string kernel;
  std::vector<Kernel::Argument> arguments;
};

nb::object memory_of(const hone_kernel_operand& operand, std::int32_t dtype) {
  static char nothing = 0;
  const auto bytes = static_cast<Py_ssize_t>(hone_dtype_size(dtype)) * operand.elements;
  return nb::steal(
      PyMemoryView_FromMemory(bytes == 0 ? &nothing : static_cast<char*>(operand.data), bytes, PyBUF_WRITE));
}

std::int32_t call_reference(void* context, const hone_kernel_operand* operands, std::int32_t count,
                            const std::int64_t* extents, std::int32_t extent_count) {
  const auto& reference = *static_cast<const Reference*>(context);
  const WithGil acquired;
  try {
    nb::list values, sizes;
    for (std::int32_t i = 0; i < count; ++i) {
      const Kernel::Argument& argument = reference.arguments[static_cast<std::size_t>(i)];
      if (argument.is_array())
        values.append(memory_of(operands[i], argument.reference_dtype));
      else
        values.append(operands[i].number);
    }
    for (std::int32_t i = 0; i < extent_count; ++i) sizes.append(extents[i]);
    reference.function(values, nb::tuple(sizes));
    return 0;
  } catch (nb::python_error& error) {
    raised_in_reference().kernel = reference.kernel;
    raised_in_reference().error.emplace(error);
    return 1;
  } catch (const std::exception&) {
    return 1;
  }
}

std::vector<nb::handle> listed(nb::sequence objects) {
  std::vector<nb::handle> list;
  for (const nb::handle object : objects) list.push_back(object);  // which the sequence keeps
  return list;
}

/// True for a number that the library takes as it is, or refuses.
bool is_plain_number(PyObject* object) { return PyFloat_CheckExact(object) != 0 || PyLong_CheckExact(object) != 0; }

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

}  // namespace

/// A call of the kernel: its arrays in the kernel's order, and its scalars.
struct Kernel::Call {
  std::vector<std::optional<Array>> arrays;  // of each argument
  std::vector<double> scalars;
  std::vector<std::int64_t> extents, elements;
  const Array* first = nullptr;  // whose device, kind and stream are the call's
  const char* first_name = "";
  std::optional<void*> chosen_stream;
};

Kernel::Kernel(const std::vector<Field>& fields, const std::vector<Parameter>& parameters,
               std::vector<Argument> arguments, std::vector<std::string> extents,
               std::optional<std::vector<std::size_t>> places, const std::string& name, nb::object reference)
    : arguments_(std::move(arguments)), extents_(std::move(extents)), places_(std::move(places)) {
  hone_kernel_spec* spec = nullptr;
  check(hone_kernel_spec_create(&spec));
  struct Destroyed {
    hone_kernel_spec* spec;
    ~Destroyed() { hone_kernel_spec_destroy(spec); }
  } const destroyed{spec};
  for (const auto& [field, value] : fields)
    check(hone_kernel_spec_add(spec, field.c_str(), c_text(field, {value.c_str(), value.size()})));
  for (const std::string& extent : extents_) check(hone_kernel_spec_add(spec, "extents", c_text("extents", extent)));
  for (const auto& [parameter, values] : parameters) {
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(c_text("parameters", value));
    check(hone_kernel_spec_add_parameter(spec, c_text("parameters", parameter), texts.data(),
                                         static_cast<std::int32_t>(texts.size())));
  }
  for (const Argument& argument : arguments_) {
    hone_kernel_argument given;
    check(hone_kernel_argument_init(&given, sizeof given));
    given.kind = argument.kind;
    given.dtype = argument.dtype;
    given.name = c_text("arguments", argument.name);
    given.elements = argument.elements ? c_text("elements", *argument.elements) : nullptr;
    given.indices_below = argument.indices_below ? c_text("indices_below", *argument.indices_below) : nullptr;
    given.value = argument.value;
    given.reference_dtype = argument.reference_dtype;
    check(hone_kernel_spec_add_argument(spec, &given));
    arrays_ += argument.is_array();
    outputs_ += argument.kind == HONE_ARGUMENT_OUT;
  }
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].kind != HONE_ARGUMENT_EXTENT && arguments_[i].kind != HONE_ARGUMENT_OUT) given_.push_back(i);
  if (!reference.is_none()) {
    auto* const kept = new Reference{std::move(reference), name, arguments_};
    check(hone_kernel_spec_set_reference(spec, call_reference, kept));
  }
  check(hone_kernel_create(spec, &kernel_));
}

Kernel::Call Kernel::call_of(const std::vector<nb::handle>& values, const std::vector<nb::handle>& extents,
                             const CallOptions& options, bool is_launched) const {
  Call call;
  call.chosen_stream = chosen_stream(options.stream);
  call.arrays.resize(arguments_.size());
  const bool is_alone = outputs_ == 1 && !nb::isinstance<nb::tuple>(options.out);
  if (!options.out.is_none() && outputs_ == 0) refuse("out: the kernel has no array that it only writes");
  if (!options.out.is_none() && !is_alone && nb::len(options.out) != outputs_)
    refuse("out: a tuple of " + std::to_string(outputs_) + " arrays is wanted");
  std::size_t value = 0, output = 0;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    if (argument.kind == HONE_ARGUMENT_EXTENT) continue;
    nb::object given = nb::none();
    if (argument.kind != HONE_ARGUMENT_OUT)
      given = nb::borrow(values[value++]);
    else if (!options.out.is_none())
      given = is_alone ? nb::borrow(options.out) : nb::object(options.out[output++]);
    if (argument.kind == HONE_ARGUMENT_SCALAR) {
      call.scalars.push_back(nb::cast<double>(given));
    } else if (!given.is_none()) {
      Array& array =
          call.arrays[i].emplace(given, argument.name.c_str(), call.chosen_stream ? &*call.chosen_stream : nullptr);
      const char* const name = argument.name.c_str();
      if (array.dtype != argument.dtype)
        throw nb::type_error((argument.name + " has the dtype " + hone_dtype_name(array.dtype) + "; the kernel takes " +
                              hone_dtype_name(argument.dtype))
                                 .c_str());
      if (argument.kind == HONE_ARGUMENT_IN)
        make_contiguous(array, name, options);
      else
        need_contiguous(array, name);
      if (argument.kind != HONE_ARGUMENT_IN && array.is_read_only) refuse(argument.name + " is read-only");
      if (call.first != nullptr && call.first->device != array.device)
        refuse(argument.name + " is on another device than " + call.first_name);
      if (call.first == nullptr) call.first = &array, call.first_name = name;
    }
  }
  if (call.first == nullptr) refuse("the kernel reads no array, which would say the device: give out=");
  find_extents(call, extents);
  check_elements(call);
  if (!is_launched) return call;
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].is_array() && !call.arrays[i])
      call.arrays[i].emplace(call.first->allocate(shape_of(call, i), arguments_[i].dtype));
  return call;
}

/// Takes the extents that the caller gave, and the others from the first array that has an element for each point.
void Kernel::find_extents(Call& call, const std::vector<nb::handle>& given) const {
  const Array* points = nullptr;
  for (std::size_t i = 0; i < arguments_.size() && points == nullptr; ++i)
    if (arguments_[i].has_points() && call.arrays[i]) {
      const Array& array = *call.arrays[i];
      if (extents_.size() == 1 || array.shape.ndim == static_cast<int>(extents_.size())) points = &array;
    }
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    if (!given.empty() && !given[i].is_none()) {
      call.extents.push_back(nb::cast<std::int64_t>(given[i]));
    } else if (points != nullptr) {
      const int axis = points->shape.ndim - 1 - static_cast<int>(i);
      call.extents.push_back(extents_.size() == 1 ? points->shape.elements() : points->shape.size[axis]);
    } else {
      std::string tried;
      for (std::size_t j = 0; j < arguments_.size(); ++j)
        if (arguments_[j].has_points() && call.arrays[j])
          tried +=
              (tried.empty() ? "" : ", ") + arguments_[j].name + " has the shape " + text_of(call.arrays[j]->shape);
      refuse("the extent " + extents_[i] + " follows from no array: pass " + extents_[i] + "=" +
             (tried.empty() ? "" : " (" + tried + ")"));
    }
  }
}

void Kernel::check_elements(Call& call) const {
  if (last_elements_.empty() || last_extents_ != call.extents) {
    last_elements_.clear();
    std::vector<std::int64_t> elements(arrays_);
    check(hone_kernel_elements(kernel_, call.extents.data(), static_cast<std::int32_t>(call.extents.size()),
                               elements.data(), static_cast<std::int32_t>(arrays_)));
    last_extents_ = call.extents;
    last_elements_ = std::move(elements);
  }
  call.elements = last_elements_;
  std::size_t at = 0;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!arguments_[i].is_array()) continue;
    const std::int64_t wanted = call.elements[at++];
    if (!call.arrays[i] || call.arrays[i]->shape.elements() == wanted) continue;
    std::string sizes;
    for (std::size_t j = 0; j < extents_.size(); ++j)
      sizes += (j == 0 ? "" : ", ") + extents_[j] + " = " + std::to_string(call.extents[j]);
    refuse(arguments_[i].name + " has the shape " + text_of(call.arrays[i]->shape) + "; " + std::to_string(wanted) +
           " elements are wanted where " + sizes);
  }
}

/// An array with an element for each point has the shape of one that came in, or of the extents; any other is a list.
Shape Kernel::shape_of(const Call& call, std::size_t argument) const {
  Shape shape;
  if (!arguments_[argument].has_points()) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < argument; ++i) at += arguments_[i].is_array();
    shape.ndim = 1;
    shape.size[0] = call.elements[at];
    return shape;
  }
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].has_points() && call.arrays[i]) return call.arrays[i]->shape;
  shape.ndim = static_cast<int>(call.extents.size());
  std::reverse_copy(call.extents.begin(), call.extents.end(), shape.size.begin());
  return shape;
}

nb::object Kernel::launch(nb::sequence values, nb::sequence extents, const CallOptions& options) const {
  return launch_call(listed(values), listed(extents), options);
}

std::optional<nb::object> Kernel::launch_positional(nb::handle args, const CallOptions& options) const {
  if (!places_ || static_cast<std::size_t>(PyTuple_Size(args.ptr())) != places_->size()) return std::nullopt;
  std::vector<nb::handle> values(places_->size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = PyTuple_GetItem(args.ptr(), static_cast<Py_ssize_t>((*places_)[i]));
    if (!arguments_[given_[i]].is_array() && !is_plain_number(values[i].ptr())) return std::nullopt;
  }
  return launch_call(values, {}, options);
}

PyObject* call_kernel(PyObject* self, PyObject* args, PyObject* kwargs) {
  try {
    CallOptions options;
    bool is_short = nb::inst_ready(self);
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; is_short && kwargs != nullptr && PyDict_Next(kwargs, &at, &name, &value) != 0;)
      is_short = read_option(name, value, options);
    if (is_short)
      if (std::optional<nb::object> results = nb::inst_ptr<Kernel>(self)->launch_positional(args, options))
        return results->release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  } catch (...) {  // a wrong argument, which the method refuses, too
  }
  const nb::object method = nb::steal(PyObject_GetAttrString(self, "call_named"));
  return method.is_valid() ? PyObject_Call(method.ptr(), args, kwargs) : nullptr;
}

nb::object Kernel::launch_call(const std::vector<nb::handle>& values, const std::vector<nb::handle>& extents,
                               const CallOptions& options) const {
  const Call call = call_of(values, extents, options, true);
  Session& session = session_for(options.session, *call.first, call.first_name);
  std::vector<void*> pointers;
  nb::list results;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!arguments_[i].is_array()) continue;
    pointers.push_back(const_cast<void*>(elements_of(*call.arrays[i])));
    if (arguments_[i].kind != HONE_ARGUMENT_IN) results.append(call.arrays[i]->object());
  }
  void* const stream = call.chosen_stream ? *call.chosen_stream : call.first->stream();
  run([&] {
    return hone_kernel_launch(session.get(), kernel_, pointers.data(), static_cast<std::int32_t>(pointers.size()),
                              call.scalars.data(), static_cast<std::int32_t>(call.scalars.size()), call.extents.data(),
                              static_cast<std::int32_t>(call.extents.size()), stream, nullptr);
  });
  if (results.size() == 1) return nb::object(results[0]);
  return nb::tuple(results);
}

Problem Kernel::problem(nb::sequence values, nb::sequence extents, nb::handle out) const {
  const Call call = call_of(listed(values), listed(extents), {.out = out}, false);
  std::uint32_t alignment = 16;
  for (const std::optional<Array>& array : call.arrays)
    if (array) alignment = std::min(alignment, alignment_of(array->data));
  return problem_of([&](hone_problem** problem) {
    return hone_problem_kernel(kernel_, call.extents.data(), static_cast<std::int32_t>(call.extents.size()), alignment,
                               problem);
  });
}

}  // namespace hone::python
