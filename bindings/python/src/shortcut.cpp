#include "src/shortcut.h"

#include <array>
#include <cstddef>

#if !defined(Py_LIMITED_API) && PY_VERSION_HEX < 0x030C0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

namespace hone::python {
namespace {

/// The arguments that a shortcut reads: an array, then any of these by name. Handles are borrowed.
struct ShortArguments {
  nb::handle x = {}, axis = {};
  bool keepdims = false;
  CallOptions options = {};
};

/// `what` is the operation of a reduction, or whether a softmax is a logarithm.
using ShortCall = nb::object (*)(std::int32_t what, const ShortArguments& given);

/// The object. Shortcuts are never freed, and need no code for it.
struct Shortcut {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  PyObject* function;
  PyObject* default_axis;
  ShortCall call;
  std::int32_t what;
  bool takes_keepdims;
};

bool assign(nb::handle& to, PyObject* value) {
  to = value;
  return true;
}

/// Reads True and False; other objects are the function's to judge.
bool read_flag(PyObject* object, bool& flag) {
  flag = object == Py_True;
  return flag || object == Py_False;
}

bool read_named(const Shortcut& shortcut, PyObject* name, PyObject* value, ShortArguments& given) {
  static PyObject* const axis = PyUnicode_InternFromString("axis");
  static PyObject* const keepdims = PyUnicode_InternFromString("keepdims");
  if (name == axis) return assign(given.axis, value);
  if (name == keepdims && shortcut.takes_keepdims) return read_flag(value, given.keepdims);
  return read_option(name, value, given.options);
}

/// Reads the arguments of a call. False: the function has to read them.
bool read_all(const Shortcut& shortcut, PyObject* const* values, std::size_t count, PyObject* names,
              ShortArguments& given) {
  if (PyVectorcall_NARGS(count) != 1) return false;
  given.x = values[0];
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i)
    if (!read_named(shortcut, PyTuple_GetItem(names, i), values[i + 1], given)) return false;
  return true;
}

PyObject* call_shortcut(PyObject* self, PyObject* const* values, std::size_t count, PyObject* names) {
  const auto& shortcut = *reinterpret_cast<const Shortcut*>(self);
  try {
    ShortArguments given{.axis = shortcut.default_axis};
    if (read_all(shortcut, values, count, names, given)) return shortcut.call(shortcut.what, given).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  } catch (...) {  // a wrong argument, which the function refuses, too
  }
  return PyObject_Vectorcall(shortcut.function, values, count, names);
}

/// As functions of C, shortcuts that are attributes of classes are no methods.
PyObject* get_unbound(PyObject* self, PyObject*, PyObject*) { return Py_NewRef(self); }

PyObject* text_of_shortcut(PyObject* self) { return PyObject_Repr(reinterpret_cast<Shortcut*>(self)->function); }

/// Pickled by name, as functions are.
PyObject* reduce_to_name(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyTypeObject* shortcut_type() {
  static std::array<PyMemberDef, 4> members{
      {{"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(Shortcut, vectorcall), Py_READONLY, nullptr},
       {"__dictoffset__", Py_T_PYSSIZET, offsetof(Shortcut, dict), Py_READONLY, nullptr},
       {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(Shortcut, weak_references), Py_READONLY, nullptr},
       {}}};
  static std::array<PyMethodDef, 2> methods{{{"__reduce__", reduce_to_name, METH_NOARGS, nullptr}, {}}};
  static std::array<PyGetSetDef, 2> properties{
      {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}}};
  static std::array<PyType_Slot, 7> slots{{{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                                           {Py_tp_descr_get, reinterpret_cast<void*>(&get_unbound)},
                                           {Py_tp_repr, reinterpret_cast<void*>(&text_of_shortcut)},
                                           {Py_tp_members, members.data()},
                                           {Py_tp_methods, methods.data()},
                                           {Py_tp_getset, properties.data()},
                                           {0, nullptr}}};
  static PyType_Spec spec{"hone._native.Shortcut", sizeof(Shortcut), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          slots.data()};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) throw nb::python_error();
  return type;
}

nb::object make_shortcut(nb::object function, ShortCall call, std::int32_t what, nb::object default_axis,
                         bool takes_keepdims) {
  PyObject* const made = PyType_GenericAlloc(shortcut_type(), 0);
  if (made == nullptr) throw nb::python_error();
  auto& shortcut = *reinterpret_cast<Shortcut*>(made);
  shortcut.vectorcall = call_shortcut;
  shortcut.function = function.release().ptr();
  shortcut.default_axis = default_axis.release().ptr();
  shortcut.call = call;
  shortcut.what = what;
  shortcut.takes_keepdims = takes_keepdims;
  return nb::borrow(made);  // and one reference for ever
}

}  // namespace

bool read_option(PyObject* name, PyObject* value, CallOptions& options) {
  static PyObject* const out = PyUnicode_InternFromString("out");
  static PyObject* const stream = PyUnicode_InternFromString("stream");
  static PyObject* const session = PyUnicode_InternFromString("session");
  static PyObject* const copy = PyUnicode_InternFromString("copy");
  if (name == out) return assign(options.out, value);
  if (name == stream) return assign(options.stream, value);
  if (name == session) return assign(options.session, value);
  return name == copy && read_flag(value, options.copy);
}

nb::object reduce_shortcut(nb::object function, std::int32_t op) {
  const auto call = [](std::int32_t what, const ShortArguments& given) {
    return reduce({what, -1, -1, false}, given.x, given.axis, given.keepdims, given.options);
  };
  return make_shortcut(std::move(function), call, op, nb::none(), true);
}

nb::object softmax_shortcut(nb::object function, bool is_logarithm) {
  const auto call = [](std::int32_t what, const ShortArguments& given) {
    return softmax({what != 0, 1, -1, HONE_NUMERICS_FAST}, given.x, given.axis, given.options);
  };
  return make_shortcut(std::move(function), call, is_logarithm ? 1 : 0, nb::int_(-1), false);
}

}  // namespace hone::python
