// check_on_host(): runs kernels on the host device under its checks, in several orders of threads and blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/kernel.h>

namespace hone {

/// In which order threads and blocks run between meeting points (barriers and warp operations). Results that depend on
/// it come from a race: threads run undisturbed between meeting points, so forward and reverse together show both
/// orders of every pair.
struct HostOrder {
  enum class Kind : std::uint8_t { forward, reverse, random };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;  ///< for random: the same seed gives the same order

  bool operator==(const HostOrder&) const = default;
};

/// "forward", "reverse" or "random:7".
std::string to_string(const HostOrder& order);

/// The inverse of to_string(). Throws Error(invalid_argument).
HostOrder parse_host_order(std::string_view text);

/// Forward, reverse and three seeded random orders.
std::vector<HostOrder> default_host_orders();

/// Memory that kernels read and write. Every run starts from `initial`.
struct CheckBuffer {
  std::string name;                ///< for messages
  std::vector<std::byte> initial;  ///< the contents before a run
  bool compared = true;            ///< must be bitwise the same after every order; false where atomics on floats add up

  template <class T>
  static CheckBuffer of(std::string name, const std::vector<T>& values, bool compared = true) {
    CheckBuffer buffer{std::move(name), std::vector<std::byte>(values.size() * sizeof(T)), compared};
    if (!values.empty()) std::memcpy(buffer.initial.data(), values.data(), buffer.initial.size());
    return buffer;
  }
};

/// One run of a check: what HostCheck::run works with.
class HostRun {
 public:
  HostRun(Device& device, const Module& module, std::span<void* const> buffers)
      : device_(device), module_(module), buffers_(buffers) {}

  /// The run's copy of HostCheck::buffers[index].
  template <class T>
  T* buffer(std::size_t index) const {
    return static_cast<T*>(buffers_[index]);
  }

  /// Runs the kernel `launch.entry` of the unit. Throws Error(device_failed) with the report of a failed check.
  void launch(const Launch& launch) const { device_.launch(module_.kernel(launch.entry), launch, nullptr); }

  /// The same for the unit's first kernel: values and pointers in the order of its parameters, of their exact types.
  template <class... Values>
  void launch(Dim3 grid, Dim3 block, std::uint32_t dynamic_smem_bytes, Values... values) const {
    Launch one{.entry = 0, .grid = grid, .block = block, .dynamic_smem_bytes = dynamic_smem_bytes, .arguments = {}};
    (one.arguments.push(values), ...);
    launch(one);
  }

 private:
  Device& device_;
  const Module& module_;
  std::span<void* const> buffers_;
};

/// What to check.
struct HostCheck {
  Unit unit;
  std::vector<CheckBuffer> buffers;
  std::function<void(const HostRun&)> run;  ///< makes the launches; called once for each order, and three times more
  std::vector<HostOrder> orders = default_host_orders();
};

struct HostCheckReport {
  /// "" when every run ended within the bounds of its buffers, and all left the same bytes. Otherwise the first thing
  /// that is wrong, with the kernel, the source lines and the order in which it showed, to put into HostCheck::orders
  /// and see it again.
  std::string failure;
  HostOrder failed_order;
  std::vector<std::vector<std::byte>> buffers;  ///< contents after the first order, in the order of HostCheck::buffers

  bool ok() const { return failure.empty(); }

  template <class T>
  std::vector<T> values(std::size_t buffer) const {
    std::vector<T> result(buffers.at(buffer).size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), buffers[buffer].data(), result.size() * sizeof(T));
    return result;
  }
};

/// Compiles the unit with the system's C++ compiler (HONE_CXX) and runs it once for each order, and three times more in
/// the first order: with every buffer right before and right behind an inaccessible page, so that an access beyond it
/// ends the launch with thread and line, and with other contents of uninitialised shared memory. On one SM, so that an
/// order can be replayed. Buffers are aligned to 256 bytes but in the run that lets them end at a page: there to the
/// largest power of two that divides their size, and nothing but an access beyond a buffer counts. In a library built
/// with ThreadSanitizer on several SMs, which report races themselves; sanitizers watch the bounds of buffers.
/// Thread-safe. Throws Error: compile_failed or unsupported when the unit does not compile, invalid_argument when
/// `orders` is empty. What a kernel does wrong is no exception but HostCheckReport::failure.
HostCheckReport check_on_host(const HostCheck& check);

}  // namespace hone
