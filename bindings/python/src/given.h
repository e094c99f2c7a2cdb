// Given: an argument that a caller passed, whose conversion raises a TypeError that names it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace hone::python {

namespace nb = nanobind;

/// The name of an argument, as a template argument.
template <std::size_t kSize>
struct ArgumentName {
  char text[kSize];
  constexpr ArgumentName(
      const char (&literal)[kSize]) {  // NOLINT(google-explicit-constructor): a literal stands for it
    std::copy_n(literal, kSize, text);
  }
};

/// Raises "keepdims: True or False is wanted, not the str 'yes'".
[[noreturn]] inline void refuse_given(const char* name, const char* wanted, nb::handle found) {
  std::string text = nb::cast<std::string>(nb::str(nb::repr(found)));
  constexpr std::size_t kMost = 80;
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  const auto type = nb::cast<std::string>(nb::object(found.type().attr("__name__")));
  throw nb::type_error((std::string(name) + ": " + wanted + " is wanted, not the " + type + " " + text).c_str());
}

/// The text for the C interface, whose texts end at a null character. Raises ValueError for one that has any.
inline const char* c_text(std::string_view name, std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw nb::value_error((std::string(name) + " has a null character, where the library's texts end").c_str());
  return text.data();
}

/// Borrowed from the caller for the time of a call. nanobind itself would answer a wrong type with a list of overloads.
template <class T, ArgumentName kName>
class Given {
 public:
  explicit Given(nb::handle object) : object_(object) {}

  operator T() const {  // NOLINT(google-explicit-constructor): it is the argument
    if constexpr (std::is_same_v<T, bool>) {
      if (PyBool_Check(object_.ptr()) != 0) return object_.ptr() == Py_True;
      if (PyLong_Check(object_.ptr()) == 0 && !is_numpy_bool()) refuse_given(kName.text, "True or False", object_);
      return PyObject_IsTrue(object_.ptr()) != 0;
    } else {
      T value{};
      if (nb::try_cast<T>(object_, value)) {
        if constexpr (std::is_same_v<T, std::string>) c_text(kName.text, value);
        return value;
      }
      if (std::is_same_v<T, std::string> && PyUnicode_Check(object_.ptr()) != 0)
        throw nb::value_error((std::string(kName.text) + " has a surrogate, which UTF-8 cannot have").c_str());
      // An int may be larger than every double.
      if (std::is_floating_point_v<T> && PyLong_Check(object_.ptr()) != 0)
        throw nb::value_error((std::string(kName.text) + ": the int is too large, or too small, for a float").c_str());
      refuse_given(kName.text, wanted(), object_);
    }
  }

 private:
  bool is_numpy_bool() const {
    const auto type = nb::cast<std::string>(nb::object(object_.type().attr("__name__")));
    return type == "bool" || type == "bool_";
  }

  static constexpr const char* wanted() {
    if constexpr (std::is_same_v<T, std::string>) return "a str";
    if constexpr (std::is_floating_point_v<T>) return "a number";
    return "an integer that fits";
  }

  nb::handle object_;
};

}  // namespace hone::python

namespace nanobind::detail {

template <class T, hone::python::ArgumentName kName>
struct type_caster<hone::python::Given<T, kName>> {
  using Value = hone::python::Given<T, kName>;
  static constexpr auto Name = const_name("object");
  template <typename>
  using Cast = Value;

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    object_ = source;
    return true;
  }
  template <typename>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator Value() { return Value(object_); }

 private:
  handle object_;
};

}  // namespace nanobind::detail
