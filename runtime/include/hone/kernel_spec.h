// KernelSpec: a kernel of one's own, as data: source, parameters, arguments, and how to know the right result.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hone/dtype.h>
#include <hone/error.h>
#include <hone/policy.h>

namespace hone {

/// An integer expression as text, such as "4 * (block_x + 2)": numbers, names, + - * / % ( ), comparisons (also in a
/// chain, "32 <= x * y <= 1024"), && || !, the words and, or and not, min(a, b), max(a, b) and ceil_div(a, b). Names
/// are those of parameters and, where the field says so, of extents; the value of a categorical parameter is its name
/// if that is a number, else its place in the list, and such a name stands for its place.
using KernelExpression = std::string;

/// One argument of a kernel; see in(), out(), inout(), scalar() and extent().
struct KernelArgument {
  enum class Kind : std::uint8_t { in, out, inout, scalar, extent };

  Kind kind = Kind::in;
  std::string name;
  DType dtype = DType::f32;
  KernelExpression elements = {};  ///< arrays: their length; extent: the value. Of extents; empty: their product
  double value = 1;                ///< scalar: what it is while the kernel is tuned and verified
  KernelExpression below = {};     ///< integer arrays: elements are in [0, below), as indices are; empty: any value

  bool is_array() const { return kind <= Kind::inout; }
  bool operator==(const KernelArgument&) const = default;

  /// Makes the elements indices, each at least 0 and less than `bound`.
  KernelArgument indices_below(KernelExpression bound) && {
    below = std::move(bound);
    return std::move(*this);
  }
};

/// An array that the kernel reads, writes, or reads and writes in place. `elements` is an expression of extents.
template <class T>
KernelArgument in(std::string name, KernelExpression elements = {}) {
  return {.kind = KernelArgument::Kind::in, .name = std::move(name), .dtype = kDTypeOf<T>, .elements = elements};
}
template <class T>
KernelArgument out(std::string name, KernelExpression elements = {}) {
  return {.kind = KernelArgument::Kind::out, .name = std::move(name), .dtype = kDTypeOf<T>, .elements = elements};
}
template <class T>
KernelArgument inout(std::string name, KernelExpression elements = {}) {
  return {.kind = KernelArgument::Kind::inout, .name = std::move(name), .dtype = kDTypeOf<T>, .elements = elements};
}

/// A number that every call passes. A winner serves all values.
template <class T>
KernelArgument scalar(std::string name, double while_tuned = 1) {
  return {.kind = KernelArgument::Kind::scalar, .name = std::move(name), .dtype = kDTypeOf<T>, .value = while_tuned};
}

/// A number that follows from extents and parameters, such as the length of an array: extent<int>("n"). Calls pass no
/// value for it, and calls whose value T cannot hold are refused.
template <class T>
KernelArgument extent(KernelExpression value) {
  return {.kind = KernelArgument::Kind::extent, .name = value, .dtype = kDTypeOf<T>, .elements = value};
}

/// How the right result of a kernel is known: a function on the CPU, a plain kernel, or the kernel itself with the
/// default policy, the first that `where` allows.
class KernelReference {
 public:
  enum class Kind : std::uint8_t { default_policy, function, kernel };

  /// One argument as a function gets it: an array, or a number.
  struct Value {
    void* data = nullptr;
    std::size_t elements = 0;
    double number = 0;
  };

  /// A parameter of a function: std::span<const T>, std::span<T>, or a number.
  struct Parameter {
    bool is_array = false;
    bool is_written = false;
    DType dtype = DType::f32;
  };

  /// Results agree with those of the default policy.
  KernelReference() = default;

  /// Results agree with what `function` computes. It takes one parameter for each argument of the kernel, in the same
  /// order: std::span<const T> for an array that is read, std::span<T> for one that is written, and a number for each
  /// scalar and extent. Where T is another type than the kernel's, such as double for float, elements are converted.
  /// May throw: the tuning then ends with its message. Called by one thread at a time for each tuning.
  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, KernelReference>)
      KernelReference(Function function)  // NOLINT(google-explicit-constructor): a lambda stands for it
      : KernelReference(signature(&Function::operator()), std::move(function)) {}

  /// A function whose parameters are known only while the program runs: it gets the values of all arguments, in order,
  /// and the extents.
  using Function = std::function<void(std::span<const Value> values, std::span<const std::int64_t> extents)>;

  /// Results agree with what `function` computes. `parameters` say of each argument of the kernel what it is there.
  static KernelReference function(std::vector<Parameter> parameters, Function function);

  /// Results agree with those of a plain kernel, the only __global__ function of a text. It takes the same arguments as
  /// the tuned kernel, and runs with one thread for each point of the extents, in blocks of 256, 16 × 16 or 8 × 8 × 4.
  static KernelReference kernel(std::string source);

  Kind kind() const { return kind_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::string& source() const { return source_; }
  void call(std::span<const Value> values, std::span<const std::int64_t> extents) const { function_(values, extents); }

 private:
  template <class... Parameters>
  struct Signature {};
  template <class Function, class... Parameters>
  static Signature<Parameters...> signature(void (Function::*)(Parameters...) const) {
    return {};
  }

  template <class T>
  struct Adapter {  // a number
    static Parameter parameter() { return {.dtype = kDTypeOf<T>}; }
    static T value(const Value& value) { return static_cast<T>(value.number); }
  };
  template <class T>
  struct Adapter<std::span<T>> {
    static Parameter parameter() { return {true, !std::is_const_v<T>, kDTypeOf<std::remove_const_t<T>>}; }
    static std::span<T> value(const Value& value) { return {static_cast<T*>(value.data), value.elements}; }
  };

  template <class Function, class... Parameters>
  KernelReference(Signature<Parameters...>, Function function)
      : kind_(Kind::function), parameters_{Adapter<std::remove_cvref_t<Parameters>>::parameter()...} {
    function_ = [function = std::move(function)](std::span<const Value> values, std::span<const std::int64_t>) {
      [&]<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
        function(Adapter<std::remove_cvref_t<Parameters>>::value(values[kIndices])...);
      }
      (std::index_sequence_for<Parameters...>());
    };
  }

  Kind kind_ = Kind::default_policy;
  std::vector<Parameter> parameters_;
  Function function_;
  std::string source_;
};

/// Describes a kernel, so that Hone can tune, verify, store and launch it. The kernel is an ordinary __global__
/// function. Parameters reach it by name: those in the template arguments of `entry` there, all others as macros.
struct KernelSpec {
  std::string name = {};            ///< in the cache and in messages; empty: that of the kernel
  std::filesystem::path file = {};  ///< the source, with the files beside it that it includes with quotes
  std::string source = {};          ///< or the source itself
  std::string entry = {};           ///< "scale", or "blur<tile, float>" for a template; empty: the only kernel there is

  std::vector<Parameter> parameters = {};    ///< up to Policy::kMaxParameters, each with its default first
  std::vector<KernelExpression> where = {};  ///< conditions on parameters; policies that break one are not tried

  /// The names of the one to three numbers that the size of a call consists of. Winners belong to classes of them.
  /// Further numbers are scalars, of which there may be four.
  std::vector<std::string> extents = {"n"};
  std::vector<KernelArgument> arguments = {};  ///< in the kernel's order, at most Arguments::kCapacity

  /// The threads of a block along x, y and z, of parameters.
  std::vector<KernelExpression> block = {"block_threads"};

  /// The elements of a block or of a thread along x, y and z, of parameters and extents: the first of them divides the
  /// first extent, and so on. One element for each thread if both are empty.
  std::vector<KernelExpression> elements_per_block = {};
  std::vector<KernelExpression> elements_per_thread = {};

  /// The kernel loops over its one extent with a grid stride, so that every grid is right: Hone also tries persistent
  /// grids of whole waves. Otherwise the grid has one block per tile.
  bool grid_stride = false;

  KernelExpression dynamic_smem_bytes = {};  ///< of parameters; empty: none
  KernelExpression cluster_blocks = {};      ///< likewise; empty: 1, no cluster
  KernelExpression dependent_launch = {};    ///< likewise; 1: Launch::dependent_launch
  std::uint32_t alignment = 0;               ///< bytes that arrays are aligned to; 0: the size of their element

  KernelReference reference = {};

  /// The largest difference to the reference, relative to the largest magnitude of the array; empty: 32 units in the
  /// last place of its dtype. Integers are equal unless a tolerance is given.
  std::optional<double> tolerance = {};

  /// The kinds of input that a winner is verified on: "uniform" has floats of [−1, 1) and integers of [−100, 100];
  /// "special" besides NaN, infinities, zeros of both signs and subnormals here and there, and integers of all values.
  std::vector<std::string> inputs = {"uniform", "special"};
};

/// Says what is wrong with a KernelSpec. Its code is invalid_argument.
class KernelSpecError : public Error {
 public:
  KernelSpecError(const std::string& message, std::string field, std::string item)
      : Error(ErrorCode::invalid_argument, message), field_(std::move(field)), item_(std::move(item)) {}

  /// The member of KernelSpec, such as "where"; "" if it is none alone.
  const std::string& field() const { return field_; }

  /// The one among several: the text of an expression, the name of a parameter or argument; "" if it is all of them.
  const std::string& item() const { return item_; }

 private:
  std::string field_, item_;
};

}  // namespace hone
