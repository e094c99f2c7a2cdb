// TunableKernel: a kernel of one's own that sessions tune and launch.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/kernel_spec.h>
#include <hone/problem.h>

namespace hone {

/// The one to three extents of a call: a number, or a list.
class KernelExtents {
 public:
  template <std::integral Integer>
  KernelExtents(Integer n)  // NOLINT(google-explicit-constructor): a number stands for it
      : KernelExtents(std::initializer_list<std::int64_t>{static_cast<std::int64_t>(n)}) {}
  KernelExtents(std::initializer_list<std::int64_t> extents)
      : KernelExtents(std::span(extents.begin(), extents.size())) {}
  explicit KernelExtents(
      std::span<const std::int64_t> extents);  ///< throws Error(invalid_argument) for more than three

  const Extents& values() const { return values_; }
  std::size_t count() const { return count_; }

 private:
  Extents values_{1, 1, 1};
  std::size_t count_;
};

/// The value that a call passes for one argument: an array in device memory, or a number. Calls refuse numbers that the
/// argument's type cannot be: what is no integer or out of its range, integers of 2^53 and beyond on both sides of 0,
/// and finite numbers that a float rounds to infinity.
class KernelValue {
 public:
  KernelValue(const void* array)
      : array_(const_cast<void*>(array)), is_array_(true) {}             // NOLINT(google-explicit-constructor)
  KernelValue(const DeviceBuffer& array) : KernelValue(array.data()) {}  // NOLINT(google-explicit-constructor)
  template <class Number>
  requires std::is_arithmetic_v<Number> KernelValue(Number number)
      : number_(static_cast<double>(number)) {}  // NOLINT(google-explicit-constructor)

  bool is_array() const { return is_array_; }
  void* array() const { return array_; }
  double number() const { return number_; }

 private:
  void* array_ = nullptr;
  double number_ = 0;
  bool is_array_ = false;
};

/// A KernelSpec as a KernelFamily. Cheap to copy; copies share one family, which lives as long as the process. Kernels
/// with equal specifications share winners in the cache. Thread-safe.
///
///     const hone::TunableKernel scale({.file = "scale.cu", .parameters = {…}, .arguments = {…}});
///     session.launch(scale, {in, out, 2.0f}, n, stream);
class TunableKernel {
 public:
  /// Reads the source; compiles nothing. Throws Error: invalid_argument for a specification that cannot be right (a
  /// parameter that nothing uses, a name in an expression that is none, a reference whose parameters do not fit the
  /// arguments, …), not_found and io_failed as read_kernel_file().
  explicit TunableKernel(const KernelSpec& spec);

  /// The kernel as sessions see it. Its one operation is called "run".
  const KernelFamily& family() const;

  const KernelSpec& spec() const;

  /// The Problem of a call, for Session::tune(), prepare() and make_plan(). Its buffers are the arrays that the kernel
  /// reads, in their order, then those that it only writes.
  Problem problem(const KernelExtents& extents, std::uint32_t alignment = kMaxAlignment) const;

  /// The number that all elements of an array must be below in a call of `problem`, and none below 0, as
  /// KernelArgument::indices_below() says; 0 if nothing is said of them. `argument` counts KernelSpec::arguments.
  std::int64_t index_limit(const Problem& problem, std::size_t argument) const;

 private:
  const class SpecFamily* family_;
};

}  // namespace hone
