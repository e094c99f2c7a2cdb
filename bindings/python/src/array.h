// Array: memory, shape and stream of any Python object that holds an array, without a copy.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <nanobind/nanobind.h>

#include "src/dlpack.h"

namespace hone::python {

namespace nb = nanobind;

inline constexpr int kMaxDims = 32;
inline constexpr int kHost =
    -1;  // the device of arrays in host memory; the others have the number of their CUDA device

struct Shape {
  int ndim;
  std::array<std::int64_t, kMaxDims>
      size;  // the first ndim: writing or copying all would take a tenth of a call's time

  explicit Shape(int axes = 0) : ndim(axes) {}
  Shape(const Shape& other) : ndim(other.ndim) { std::copy_n(other.size.begin(), ndim, size.begin()); }
  Shape& operator=(const Shape& other) {
    ndim = other.ndim;
    std::copy_n(other.size.begin(), ndim, size.begin());
    return *this;
  }

  std::int64_t elements() const;
  bool operator==(const Shape& other) const;
};

/// A view of the caller's array. It holds what the object lent (a buffer, a DLPack tensor) until it is destroyed.
/// Move-only; used with the GIL held.
class Array {
 public:
  /// Views `object`. Tries, in this order, DLPack's C exchange interface, the buffer protocol,
  /// `__cuda_array_interface__` and `__dlpack__`. `name` is for messages. Raises TypeError for an object that has none
  /// of them or a dtype that Hone does not know, and BufferError for what cannot be lent. `stream` is the stream that
  /// the caller chose (null: none), for producers that must order their work before it.
  Array(nb::handle object, const char* name, const void* const* stream = nullptr);
  Array(Array&&) = default;
  Array& operator=(Array&&) = default;
  ~Array();

  void* data = nullptr;
  std::int32_t dtype = -1;  // as in hone/c.h
  int device = kHost;
  Shape shape;
  std::array<std::int64_t, kMaxDims> strides;  // in elements, of each axis
  bool is_read_only = false;

  nb::handle object() const { return object_; }

  /// True if the elements lie one after the other in the order of the indices.
  bool is_contiguous() const;

  /// The stream that work on the array is ordered by: the current one of the library that it belongs to.
  void* stream() const;

  /// A new, contiguous array of the same kind on the same device.
  Array allocate(const Shape& of, std::int32_t of_dtype) const;

 private:
  Array() = default;
  bool read_exchange(const char* name);
  bool read_buffer(const char* name);
  bool read_cuda_interface(const char* name);
  bool read_dlpack(const char* name, const void* const* chosen);
  void read(const DLTensor& tensor, const char* name);

  nb::object object_;
  const DLExchange* exchange_ = nullptr;
  void* interface_stream_ = nullptr;
  bool has_interface_stream_ = false;
  struct Lent {
    void* what = nullptr;
    void (*give_back)(void* what) = nullptr;
    Lent() = default;
    Lent(Lent&& other) noexcept : what(other.what), give_back(std::exchange(other.give_back, nullptr)) {}
    Lent& operator=(Lent&& other) noexcept {
      std::swap(what, other.what);
      std::swap(give_back, other.give_back);
      return *this;
    }
    ~Lent() {
      if (give_back != nullptr) give_back(what);
    }
  } lent_;

  /// Keeps a DLPack tensor, of either version, until this array is destroyed.
  template <class Managed>
  void keep(Managed* managed) {
    lent_.what = managed;
    lent_.give_back = [](void* what) {
      auto* const kept = static_cast<Managed*>(what);
      if (kept->deleter != nullptr) kept->deleter(kept);
    };
  }
};

/// The Python functions and classes that the extension calls, set once by the package.
struct Hooks {
  nb::object errors;           // by status, as in hone/c.h
  nb::object empty;            // empty(like, shape, dtype)
  nb::object contiguous;       // contiguous(array, order of the axes or None)
  nb::object current_stream;   // current_stream(array, device) -> int
  nb::object stream_handle;    // stream_handle(stream) -> int
  nb::object default_session;  // default_session(device name)
  nb::object device_of;        // device_of(array) -> int
};
Hooks& hooks();

}  // namespace hone::python
