// check_on_host(): runs kernels on the host device under its checks, in several orders of threads and blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/kernel.h>

namespace hone {

/// The order in which threads and blocks run between meeting points, that is barriers and warp operations. A result
/// that depends on it comes from a race. Threads run undisturbed between meeting points, so forward and reverse
/// together show both orders of every pair of threads.
struct HostOrder {
  enum class Kind : std::uint8_t { forward, reverse, random };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;  ///< of a random order: the same seed gives the same order

  bool operator==(const HostOrder&) const = default;
};

/// "forward", "reverse" or "random:7".
std::string to_string(const HostOrder& order);

/// The inverse of to_string(). Throws Error(invalid_argument) for any other text.
HostOrder parse_host_order(std::string_view text);

/// Forward, reverse and three seeded random orders.
std::vector<HostOrder> default_host_orders();

/// Memory that kernels read and write. Every run starts with the contents `initial`.
struct CheckBuffer {
  std::string name;                ///< for messages
  std::vector<std::byte> initial;  ///< the contents before a run
  bool compared = true;            ///< the contents must be the same bits after every order; false for float atomics

  template <class T>
  static CheckBuffer of(std::string name, const std::vector<T>& values, bool compared = true) {
    CheckBuffer buffer{std::move(name), std::vector<std::byte>(values.size() * sizeof(T)), compared};
    if (!values.empty()) std::memcpy(buffer.initial.data(), values.data(), buffer.initial.size());
    return buffer;
  }
};

/// One run of a check, as HostCheck::run sees it.
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

  /// The same for the unit's first kernel. `values` are its arguments in order, and must have exactly the types of its
  /// parameters.
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

/// A run with extents of more than 2^31 elements, for indices that 32 bits cannot hold. Its buffers read as zero, and
/// take memory only where they are written; of each launch, the blocks at the corners of the grid run.
struct HostLargeRun {
  std::string label;                            ///< for messages: "46351x46349 elements"
  std::vector<std::uint64_t> buffer_bytes;      ///< the size of each of HostCheck::buffers in this run
  std::function<void(const HostRun&)> run;      ///< makes the launches
};

/// The kernels to check, their buffers and their launches.
struct HostCheck {
  Unit unit;
  std::vector<CheckBuffer> buffers;
  std::function<void(const HostRun&)> run;  ///< makes the launches; called for each order, and a few times more
  std::vector<HostOrder> orders = default_host_orders();
  std::optional<HostLargeRun> large = {};

  /// Other contents of all buffers before one more run, in the first order; empty: there is none. What a kernel leaves
  /// unwritten, or reads before it is written, makes HostCheckReport::other_buffers differ.
  std::vector<std::vector<std::byte>> other_initial = {};
  bool looks_for_lost_updates = true;  ///< by a traced run, which compiles the unit once more

  /// A run is stopped, and its check fails, where a thread runs for this long without a barrier, warp operation or
  /// atomic function, or spins on atomics, and where a block runs ten times as long. Time that other programs have the
  /// processor counts, too, up to three times as much as what the thread uses.
  std::chrono::milliseconds deadline{10000};
};

struct HostCheckReport {
  /// "" if every run stayed within its buffers and all runs left the same bytes. Otherwise the first fault, with the
  /// kernel, the source lines and the order in which it showed. HostCheck::orders with that order replays it.
  std::string failure;
  HostOrder failed_order;
  bool ran_too_long = false;  ///< the fault is that HostCheck::deadline stopped a run
  std::vector<std::vector<std::byte>> buffers;  ///< HostCheck::buffers after the run of the first order
  std::vector<std::vector<std::byte>> other_buffers;  ///< the same after the run from HostCheck::other_initial
  std::string large_not_run;                    ///< why HostCheck::large was not run; "" if it was, or there is none
  std::string not_traced;                       ///< why updates that may be lost were not looked for; "" if they were

  bool ok() const { return failure.empty(); }

  template <class T>
  std::vector<T> values(std::size_t buffer) const {
    std::vector<T> result(buffers.at(buffer).size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), buffers[buffer].data(), result.size() * sizeof(T));
    return result;
  }
};

/// Compiles the unit with the system's C++ compiler (HONE_CXX) and runs it on one SM of the host device, once in each
/// order and then up to five times more in the first order:
/// - with every buffer right before an inaccessible page, and with every buffer right behind one, so that an access out
///   of bounds ends the launch with its thread and line. In these two runs only such accesses count. A buffer that ends
///   at the page is aligned to the largest power of two that divides its size; all others are aligned to 256 bytes.
/// - with other contents of shared memory that the kernel has not set.
/// - from HostCheck::other_initial.
/// - with every access traced, which finds places that several threads change, as by `x += 1`, without an atomic
///   function or a barrier: the sum is right here, and not on a GPU.
///
/// After these, HostCheck::large is run. What ends it is a fault, unless an integer was divided by zero, since its
/// buffers hold zeros, or a thread took long: HostCheckReport::large_not_run then tells, or nothing.
/// If results depend on the order, the traced run names the accesses that nothing orders.
///
/// In a library that was built with a sanitizer, the sanitizer watches the bounds of buffers instead. ThreadSanitizer
/// reports races itself, and runs the kernel on several SMs.
///
/// Thread-safe. A fault of the kernel is HostCheckReport::failure, not an exception. Throws Error: compile_failed or
/// unsupported if the unit does not compile, invalid_argument if `orders` is empty.
HostCheckReport check_on_host(const HostCheck& check);

}  // namespace hone
