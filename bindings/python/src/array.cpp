#include "src/array.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nanobind/stl/string.h>

namespace hone::python {
namespace {

/// A row for each dtype, in the order of hone_dtype(): how the protocols spell it.
struct DTypeRow {
  std::uint8_t code;
  std::uint8_t bytes;
  char kind;  // of __cuda_array_interface__
};
constexpr std::array<DTypeRow, 14> kDTypes{{{kDLFloat, 2, 'f'},
                                            {kDLBfloat, 2, 0},
                                            {kDLFloat, 4, 'f'},
                                            {kDLFloat, 8, 'f'},
                                            {kDLInt, 1, 'i'},
                                            {kDLInt, 2, 'i'},
                                            {kDLInt, 4, 'i'},
                                            {kDLInt, 8, 'i'},
                                            {kDLUInt, 1, 'u'},
                                            {kDLUInt, 2, 'u'},
                                            {kDLUInt, 4, 'u'},
                                            {kDLUInt, 8, 'u'},
                                            {kDLBool, 1, 'b'},
                                            {kDLFloat8E4M3, 1, 0}}};

/// Dtypes that buffers do not have: they are lent as the integers of their size.
struct UnbufferedDType {
  const char* name;
  const char* integer;
  std::int32_t dtype;
};
constexpr std::array<UnbufferedDType, 2> kUnbufferedDTypes{{{"bfloat16", "uint16", 1}, {"float8_e4m3fn", "uint8", 13}}};

template <class Matches>
std::int32_t find_dtype(const Matches& matches) {
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(), matches);
  return row == kDTypes.end() ? -1 : static_cast<std::int32_t>(row - kDTypes.begin());
}

std::int32_t dtype_of(const DLDataType& type) {
  if (type.lanes != 1) return -1;
  return find_dtype([&](const DTypeRow& row) { return row.code == type.code && row.bytes * 8 == type.bits; });
}

/// "<f4" of the array interface.
std::int32_t dtype_of(std::string_view typestr) {
  if (typestr.size() != 3 || typestr[0] == '>') return -1;
  return find_dtype([&](const DTypeRow& row) { return row.kind == typestr[1] && row.bytes == typestr[2] - '0'; });
}

/// "f" of the buffer protocol, whose sizes differ among platforms and prefixes: the item's size decides.
std::int32_t dtype_of(std::string_view format, Py_ssize_t bytes) {
  if (!format.empty() && std::string_view("@=<").find(format[0]) != std::string_view::npos) format.remove_prefix(1);
  if (format.size() != 1) return -1;
  constexpr std::string_view kCodes = "efd?bhilqnBHILQN", kKinds = "fffbiiiiiiuuuuuu";
  const std::size_t at = kCodes.find(format[0]);
  if (at == std::string_view::npos) return -1;
  return find_dtype([&](const DTypeRow& row) { return row.kind == kKinds[at] && row.bytes == bytes; });
}

[[noreturn]] void raise_type(const char* name, const std::string& why) {
  throw nb::type_error((std::string(name) + ": " + why).c_str());
}

std::string kind_of(nb::handle object) { return nb::cast<std::string>(nb::object(object.type().attr("__name__"))); }

/// The attribute, or nothing where there is none; other errors are raised.
nb::object attribute_of(nb::handle object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
    PyErr_Clear();
  }
  return nb::steal(found);
}

/// The facts that calls need of a type of arrays.
struct KnownType {
  const DLExchange* exchange = nullptr;  // null: it has none
  nb::object gradient;                   // the descriptor of `requires_grad`, if there is one
  descrgetfunc get_gradient = nullptr;   // its getter, which takes half the time of asking the object
};

KnownType ask(nb::handle type) {
  KnownType known;
  const nb::object capsule = attribute_of(type, "__dlpack_c_exchange_api__");
  if (capsule.is_valid() && PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") != 0)
    known.exchange = static_cast<const DLExchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (known.exchange != nullptr && known.exchange->version.major != 1) known.exchange = known.exchange->previous;
  if (known.exchange == nullptr) return known;
  known.gradient = attribute_of(type, "requires_grad");
  if (known.gradient.is_valid())
    known.get_gradient = reinterpret_cast<descrgetfunc>(
        PyType_GetSlot(reinterpret_cast<PyTypeObject*>(known.gradient.type().ptr()), Py_tp_descr_get));
  return known;
}

/// Types are asked once, and kept.
const KnownType& known_type(nb::handle type) {
  static auto& all = *new std::unordered_map<PyObject*, KnownType>();
  static const std::pair<PyObject* const, KnownType>* last = nullptr;
  if (last != nullptr && last->first == type.ptr()) return last->second;
  auto found = all.find(type.ptr());
  if (found == all.end()) {
    KnownType known = ask(type);  // which may run Python code
    found = all.try_emplace(type.inc_ref().ptr(), std::move(known)).first;
  }
  last = &*found;
  return found->second;
}

void check_dims(std::int64_t ndim, const char* name) {
  if (ndim > kMaxDims)
    throw nb::value_error(
        (std::string(name) + " has " + std::to_string(ndim) + " dimensions; at most 32 are taken").c_str());
}

void fill_contiguous(const Shape& shape, std::array<std::int64_t, kMaxDims>& strides) {
  std::int64_t stride = 1;
  for (int i = shape.ndim - 1; i >= 0; stride *= shape.size[i], --i) strides[i] = stride;
}

std::int64_t in_elements(std::int64_t bytes, std::int64_t size, const char* name) {
  if (bytes % size != 0)
    throw nb::value_error((std::string(name) + ": a stride of " + std::to_string(bytes) +
                           " bytes is no multiple of the element's " + std::to_string(size))
                              .c_str());
  return bytes / size;
}

/// Raises BufferError for a tensor whose elements are the negatives of what is in memory, as the imaginary part of a
/// conjugate is, which the exchange does not tell. Such a part begins in the middle of a complex number: others are not
/// asked.
void refuse_negative_view(const Array& array, nb::handle object, const char* name) {
  if (array.dtype < 0 || (reinterpret_cast<std::uintptr_t>(array.data) & kDTypes[array.dtype].bytes) == 0) return;
  const nb::object is_negative = attribute_of(object, "is_neg");
  if (!is_negative.is_valid() || !nb::cast<bool>(is_negative())) return;
  PyErr_Format(PyExc_BufferError, "%s is a view of the negatives of its elements: pass %s.resolve_neg()", name, name);
  throw nb::python_error();
}

}  // namespace

Hooks& hooks() {
  static auto& all = *new Hooks();
  return all;
}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= size[i];
  return n;
}

bool Shape::operator==(const Shape& other) const {
  return ndim == other.ndim && std::equal(size.begin(), size.begin() + ndim, other.size.begin());
}

Array::Array(nb::handle object, const char* name, const void* const* chosen) : object_(nb::borrow(object)) {
  exchange_ = known_type(object.type()).exchange;
  if (!read_exchange(name) && !read_buffer(name) && !read_cuda_interface(name) && !read_dlpack(name, chosen))
    raise_type(name, "a " + kind_of(object) +
                         " is no array; NumPy, PyTorch, CuPy and whatever has a buffer, "
                         "__cuda_array_interface__ or __dlpack__ are taken");
  if (dtype < 0) {
    const nb::object its = attribute_of(object, "dtype");
    raise_type(name, "elements of " + std::string(its.is_valid() ? nb::str(its).c_str() : "this dtype") +
                         " are not taken; floats, integers of 8 to 64 bits in native byte order and bool are");
  }
}

Array::~Array() = default;

bool Array::is_contiguous() const {
  std::int64_t stride = 1;
  for (int i = shape.ndim - 1; i >= 0; --i) {
    if (shape.size[i] == 0) return true;
    if (shape.size[i] != 1 && strides[i] != stride) return false;
    stride *= shape.size[i];
  }
  return true;
}

void Array::read(const DLTensor& tensor, const char* name) {
  check_dims(tensor.ndim, name);
  switch (tensor.device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      device = kHost;
      break;
    case kDLCUDA:
    case kDLCUDAManaged:
      device = tensor.device.device_id;
      break;
    default:
      raise_type(name, "it is neither in host memory nor on a CUDA device");
  }
  data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  dtype = dtype_of(tensor.dtype);
  shape.ndim = tensor.ndim;
  std::copy_n(tensor.shape, tensor.ndim, shape.size.begin());
  if (tensor.strides != nullptr) {
    std::copy_n(tensor.strides, tensor.ndim, strides.begin());
  } else {
    fill_contiguous(shape, strides);
  }
}

bool Array::read_exchange(const char* name) {
  if (exchange_ == nullptr) return false;
  // The exchange is silent about gradients, which these calls do not compute.
  const KnownType& type = known_type(object_.type());
  nb::object gradient;
  if (type.get_gradient != nullptr) {
    gradient = nb::steal(type.get_gradient(type.gradient.ptr(), object_.ptr(), object_.type().ptr()));
    if (!gradient.is_valid()) throw nb::python_error();
  }
  if (gradient.is_valid() && gradient.ptr() == Py_True) {
    PyErr_Format(PyExc_BufferError, "%s requires a gradient: pass %s.detach(), or call hone.torch", name, name);
    throw nb::python_error();
  }
  if (exchange_->tensor_from_object != nullptr) {
    DLTensor tensor{};
    if (exchange_->tensor_from_object(object_.ptr(), &tensor) != 0) throw nb::python_error();
    read(tensor, name);
    refuse_negative_view(*this, object_, name);
    return true;
  }
  DLManagedTensorVersioned* managed = nullptr;
  if (exchange_->managed_from_object(object_.ptr(), &managed) != 0) throw nb::python_error();
  keep(managed);
  read(managed->dl_tensor, name);
  is_read_only = (managed->flags & kDLReadOnly) != 0;
  return true;
}

bool Array::read_buffer(const char* name) {
  if (PyObject_CheckBuffer(object_.ptr()) == 0) return false;
  if (kind_of(object_) == "MaskedArray") raise_type(name, "masked arrays are not taken");
  auto buffer = std::make_unique<Py_buffer>();
  const UnbufferedDType* unbuffered = nullptr;
  if (PyObject_GetBuffer(object_.ptr(), buffer.get(), PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    const nb::object its = attribute_of(object_, "dtype");
    const auto found = std::find_if(
        kUnbufferedDTypes.begin(), kUnbufferedDTypes.end(),
        [&](const UnbufferedDType& known) { return its.is_valid() && nb::str(its).equal(nb::str(known.name)); });
    if (found == kUnbufferedDTypes.end()) return false;  // __dlpack__ may know more
    unbuffered = found;
    const nb::object integers = object_.attr("view")(found->integer);
    if (PyObject_GetBuffer(integers.ptr(), buffer.get(), PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  }
  Py_buffer* const held = buffer.release();
  lent_.what = held;
  lent_.give_back = [](void* what) {
    auto* const lent = static_cast<Py_buffer*>(what);
    PyBuffer_Release(lent);
    delete lent;
  };
  check_dims(held->ndim, name);
  data = held->buf;
  is_read_only = held->readonly != 0;
  dtype = unbuffered != nullptr ? unbuffered->dtype
                                : dtype_of(held->format == nullptr ? "B" : held->format, held->itemsize);
  if (dtype < 0) return true;
  shape.ndim = held->ndim;
  std::copy_n(held->shape, held->ndim, shape.size.begin());
  fill_contiguous(shape, strides);
  if (held->strides != nullptr && shape.elements() != 0)
    for (int i = 0; i < shape.ndim; ++i)
      if (shape.size[i] > 1) strides[i] = in_elements(held->strides[i], held->itemsize, name);
  return true;
}

bool Array::read_cuda_interface(const char* name) {
  const nb::object found = attribute_of(object_, "__cuda_array_interface__");
  if (!found.is_valid()) return false;
  const auto interface = nb::cast<nb::dict>(found);
  const auto sizes = nb::cast<nb::tuple>(interface["shape"]);
  check_dims(static_cast<std::int64_t>(sizes.size()), name);
  shape.ndim = static_cast<int>(sizes.size());
  for (int i = 0; i < shape.ndim; ++i) shape.size[i] = nb::cast<std::int64_t>(sizes[i]);
  dtype = dtype_of(std::string_view(nb::cast<const char*>(interface["typestr"])));
  if (interface.contains("mask") && !interface["mask"].is_none()) raise_type(name, "masked arrays are not taken");
  fill_contiguous(shape, strides);
  if (dtype >= 0 && interface.contains("strides") && !interface["strides"].is_none()) {
    const auto given = nb::cast<nb::tuple>(interface["strides"]);
    for (int i = 0; i < shape.ndim; ++i)
      strides[i] = in_elements(nb::cast<std::int64_t>(given[i]), kDTypes[dtype].bytes, name);
  }
  const auto place = nb::cast<nb::tuple>(interface["data"]);
  data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(place[0]));
  is_read_only = nb::cast<bool>(place[1]);
  if (interface.contains("stream") && !interface["stream"].is_none()) {
    interface_stream_ = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(interface["stream"]));
    has_interface_stream_ = true;
  }
  device = nb::cast<int>(hooks().device_of(object_));
  return true;
}

bool Array::read_dlpack(const char* name, const void* const* chosen) {
  const nb::object exporter = attribute_of(object_, "__dlpack__");
  const nb::object place = attribute_of(object_, "__dlpack_device__");
  if (!exporter.is_valid() || !place.is_valid()) return false;
  nb::dict arguments;
  // The producer's current stream is the one that is used, unless the caller chose one: then nothing is to be awaited.
  if (nb::cast<int>(place()[0]) == kDLCUDA) {
    arguments["stream"] = chosen == nullptr ? nb::int_(-1) : nb::int_(reinterpret_cast<std::uintptr_t>(*chosen));
    if (chosen != nullptr && *chosen == nullptr) arguments["stream"] = nb::int_(1);  // the default stream's number
  }
  nb::object capsule;
  try {
    nb::dict versioned = nb::borrow<nb::dict>(nb::steal(PyDict_Copy(arguments.ptr())));
    versioned["max_version"] = nb::make_tuple(1, 1);
    capsule = exporter(**versioned);
  } catch (nb::python_error& error) {
    // An array that lends its memory neither as a buffer nor as a tensor has elements that neither knows.
    if (error.matches(PyExc_BufferError) && PyObject_CheckBuffer(object_.ptr()) != 0) return true;
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = exporter(**arguments);
  }
  const auto take = [&](auto* managed, const char* used) {
    PyCapsule_SetName(capsule.ptr(), used);
    PyCapsule_SetDestructor(capsule.ptr(), nullptr);
    keep(managed);
    read(managed->dl_tensor, name);
  };
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    auto* const managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major != 1) raise_type(name, "its DLPack has another major version than 1");
    is_read_only = (managed->flags & kDLReadOnly) != 0;
    take(managed, "used_dltensor_versioned");
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    take(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor")), "used_dltensor");
  } else {
    raise_type(name, "its __dlpack__() gave no DLPack tensor");
  }
  return true;
}

void* Array::stream() const {
  if (device == kHost) return nullptr;
  if (exchange_ != nullptr && exchange_->current_stream != nullptr) {
    void* current = nullptr;
    if (exchange_->current_stream(kDLCUDA, device, &current) != 0) throw nb::python_error();
    return current;
  }
  if (has_interface_stream_) return interface_stream_;
  return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(hooks().current_stream(object_, device)));
}

Array Array::allocate(const Shape& of, std::int32_t of_dtype) const {
  if (exchange_ == nullptr || exchange_->allocate == nullptr) {
    nb::list sizes;
    for (int i = 0; i < of.ndim; ++i) sizes.append(of.size[i]);
    return Array(hooks().empty(object_, nb::tuple(sizes), of_dtype), "out");
  }
  Shape shape_of = of;
  const DTypeRow& row = kDTypes[of_dtype];
  DLTensor prototype{.data = nullptr,
                     .device = {device == kHost ? kDLCPU : kDLCUDA, device == kHost ? 0 : device},
                     .ndim = of.ndim,
                     .dtype = {row.code, static_cast<std::uint8_t>(row.bytes * 8), 1},
                     .shape = shape_of.size.data(),
                     .strides = nullptr,
                     .byte_offset = 0};
  DLManagedTensorVersioned* managed = nullptr;
  std::string message = "the array's library could not allocate";
  const auto set_error = [](void* context, const char*, const char* text) {
    *static_cast<std::string*>(context) = text;
  };
  if (exchange_->allocate(&prototype, &managed, &message, set_error) != 0) {
    PyErr_SetString(PyExc_MemoryError, message.c_str());
    throw nb::python_error();
  }
  Array made;
  made.exchange_ = exchange_;
  made.read(managed->dl_tensor, "out");
  void* object = nullptr;
  if (exchange_->object_from_managed(managed, &object) != 0) throw nb::python_error();
  made.object_ = nb::steal(static_cast<PyObject*>(object));
  return made;
}

}  // namespace hone::python
