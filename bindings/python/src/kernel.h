// Kernel: a kernel of the caller's own, as a Python object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/calls.h"

namespace hone::python {

class Kernel {
 public:
  struct Argument {
    std::int32_t kind;   // HONE_ARGUMENT_…
    std::int32_t dtype;  // of the library
    std::string name;
    std::optional<std::string> elements, indices_below;
    double value;
    std::int32_t reference_dtype;

    bool is_array() const { return kind < HONE_ARGUMENT_SCALAR; }
    /// An array with an element for each point of the extents.
    bool has_points() const { return is_array() && !elements; }
  };
  using Field = std::pair<std::string, nb::bytes>;
  using Parameter = std::pair<std::string, std::vector<std::string>>;

  /// `name` is for messages. `places` says where calls that name no argument have each of those that the kernel reads,
  /// in its order; None: some have to be named. `reference` is None, or called with a list that has a memoryview for
  /// each array and a number for any other argument, and with a tuple of the extents; it writes the right results to
  /// the memoryviews, which are valid until it returns. It is kept as long as the process lives, as the library keeps
  /// the kernel.
  Kernel(const std::vector<Field>& fields, const std::vector<Parameter>& parameters, std::vector<Argument> arguments,
         std::vector<std::string> extents, std::optional<std::vector<std::size_t>> places, const std::string& name,
         nb::object reference);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { hone_kernel_destroy(kernel_); }

  /// `values` are what the kernel is given, in its order: an array for each `in` and `inout`, a number for each scalar.
  /// `extents` has a number or None, for an extent that follows from an array, for each. `options.out` is None, an
  /// array, or a sequence of them. Returns the arrays that the kernel writes: one, or a tuple.
  nb::object launch(nb::sequence values, nb::sequence extents, const CallOptions& options) const;

  /// Launches a call whose arguments are given by position, with numbers for the scalars and no extents. Nothing: the
  /// call has to be read otherwise.
  std::optional<nb::object> launch_positional(nb::handle args, const CallOptions& options) const;

  Problem problem(nb::sequence values, nb::sequence extents, nb::handle out) const;

 private:
  struct Call;
  /// `extents` is empty if none are given.
  Call call_of(const std::vector<nb::handle>& values, const std::vector<nb::handle>& extents,
               const CallOptions& options, bool is_launched) const;
  nb::object launch_call(const std::vector<nb::handle>& values, const std::vector<nb::handle>& extents,
                         const CallOptions& options) const;
  void find_extents(Call& call, const std::vector<nb::handle>& given) const;
  void check_elements(Call& call) const;
  Shape shape_of(const Call& call, std::size_t argument) const;

  hone_kernel* kernel_ = nullptr;
  std::vector<Argument> arguments_;
  std::vector<std::string> extents_;
  std::optional<std::vector<std::size_t>> places_;
  std::vector<std::size_t> given_;  // the arguments that calls give, in the kernel's order
  // The extents of the last call and the elements that follow, which take a fifth of a call; threads have the GIL.
  mutable std::vector<std::int64_t> last_extents_, last_elements_;
  std::size_t arrays_ = 0;   // among the arguments
  std::size_t outputs_ = 0;  // among them: those that are only written
};

/// The slot of the type for calls: by position, or else by the method `call_named` of the package's class.
PyObject* call_kernel(PyObject* self, PyObject* args, PyObject* kwargs);

}  // namespace hone::python
