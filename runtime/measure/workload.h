// Workload: device memory with inputs to run a problem on, over and over, without finding them in the cache.
// Workspaces: the memory beside them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

#include "runtime/measure/canaries.h"

namespace hone {

/// The arrays of one problem; for cold inputs several times over: launches that take the copies in turn read memory,
/// not the last-level cache. Pointers have exactly the problem's alignment. Not thread-safe.
class Workload {
 public:
  /// Allocates on `device`; throws out_of_memory. All work is enqueued on `stream`, which must live longer. On the host
  /// device, where filling memory takes its time, a small `budget` of the tuning makes fewer copies.
  Workload(std::shared_ptr<Device> device, const Problem& problem, Stream stream, InputState inputs = InputState::cold,
           std::chrono::milliseconds budget = std::chrono::seconds(2));
  /// Waits for the stream: memory is freed at once, and an array may still be filled if nothing was measured.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  /// Fills all copies of all inputs with the first input kind, each from its beginning.
  void fill_all();

  /// The buffers of the next call, in the order of KernelFamily::buffers().
  const std::vector<void*>& next();

  /// True where replayed calls, which read the same copies in every replay, may find some of them in the cache: those
  /// that the last replay, of this candidate or another, read at its end. Not where one copy is larger than the cache,
  /// nor on the host device, where replayed work calls next() anew.
  bool must_displace_cache() const;

  /// Enqueues reading so much memory that nothing which was read before is in the cache. (Writing it, as NVBench's
  /// l2flush does, leaves the cache full of lines that are written back while something is timed.)
  void displace_cache();

  /// Enqueues a call on the workload's stream.
  using Run = std::function<void(const Problem&, std::span<void* const>)>;

  /// Runs `problem` (no larger than the one that the workload was made for) on one kind of input twice, into outputs
  /// that hold other bytes each time, since the bits must be the same, and lets the family compare; where an output may
  /// lie on an input (BufferSpec::in_place_of), once more so. Nothing around an array may be written, and no input
  /// that an output does not lie on (the first and last MiB of each are looked at). `run_reference` is that of a
  /// family with a reference kernel. "" when right, else what was wrong.
  std::string verify(const Problem& problem, const Candidate& candidate, std::string_view kind, const Run& run,
                     const Run& run_reference = {});

  /// The verified parts of the outputs that `run` leaves for `problem` (as for verify()) on one kind of input.
  std::vector<std::vector<std::byte>> outputs_of(const Problem& problem, std::string_view kind, const Run& run);

 private:
  struct Array {
    BufferSpec spec;
    DeviceBuffer memory;       ///< with room for canaries on either side of the copies
    std::size_t stride_bytes;  ///< from copy to copy
    std::size_t offset_bytes;  ///< of the first copy, for the problem's alignment

    std::byte* first_copy() const { return memory.as<std::byte>() + Canaries::kBytes + offset_bytes; }
  };

  struct Output {
    BufferSpec spec;
    std::size_t buffer;  ///< its place among all buffers
    std::vector<ElementRange> parts;
  };

  struct Check {
    Canaries canaries;  ///< around the first copies, over whatever other copies are there
    std::vector<void*> pointers = {};
    std::vector<BufferSpec> inputs = {};
    std::vector<std::vector<std::byte>> patterns = {};  ///< of the inputs
    std::vector<std::size_t> offsets = {};              ///< of these in patterns_
    std::vector<Output> outputs = {};                   ///< inputs that are updated come first
  };

  Check prepare(const Problem& problem, std::string_view kind);
  bool place_in_inputs(Check& check);
  /// Before a run: outputs are filled with a byte, and inputs that a run may have updated are filled again.
  void poison(const Check& check, std::byte fill);
  void refill_updated(const Check& check);
  void upload_patterns(Check& check);
  void fill_input(const Check& check, std::size_t input);
  std::string damage(const Check& check);
  void append_ends(const Check& check, std::size_t input, std::vector<RepeatedBytes>& runs,
                   std::vector<std::size_t>& inputs) const;
  std::vector<std::vector<std::byte>> read_outputs(const Check& check);
  void fill(void* memory, std::size_t bytes, const std::vector<std::byte>& pattern);

  /// Copies what is in the first `period` bytes behind itself until `bytes` are filled.
  void repeat(std::byte* first, std::size_t period, std::size_t bytes);

  std::shared_ptr<Device> device_;
  Problem problem_;
  Stream stream_;
  std::vector<Array> arrays_;
  InputState inputs_;
  std::size_t displacing_bytes_ = 0;
  DeviceBuffer displacing_;  ///< allocated when first needed
  DeviceBuffer canary_patterns_;
  DeviceBuffer patterns_;  ///< of the inputs of the last check, as far as they were needed
  std::size_t copies_ = 1;
  std::size_t turn_ = 0;
  std::vector<void*> pointers_;
};

/// Several workspaces, zeroed. Where in memory a workspace lies moves a short call whose blocks meet in one by up to
/// three percent either way (3.4 µs on an H200), and the next page of 4 KiB may be another matter: what is measured in
/// one of them alone holds in that one alone.
class Workspaces {
 public:
  static constexpr std::size_t kCount = 16;

  /// `bytes` each. Enqueued on `stream`. Throws out_of_memory.
  Workspaces(std::shared_ptr<Device> device, std::size_t bytes, Stream stream);

  /// Any number will do; nullptr where they have no bytes.
  void* of_turn(std::size_t turn) const;

  /// Enqueues zeroing all of them, for when a launch may have left something else.
  void clear(Stream stream) const;

 private:
  std::shared_ptr<Device> device_;
  std::size_t stride_bytes_;
  DeviceBuffer memory_;
};

}  // namespace hone
