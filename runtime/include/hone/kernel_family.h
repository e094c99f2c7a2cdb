// KernelFamily: one tunable algorithm. Built-in and user-defined families implement the same interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/kernel.h>
#include <hone/policy.h>
#include <hone/problem.h>
#include <hone/problem_class.h>
#include <hone/verifier.h>

namespace hone {

/// One array that a call reads or writes.
struct BufferSpec {
  std::string_view name;
  bool is_input = true;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::uint32_t alignment = 0;  ///< bytes that its address is a multiple of; 0: an input's Problem::alignment, an
                                ///< output's the element
  bool is_validated = false;    ///< an input that KernelFamily::refuse_contents() has something to say about
  int in_place_of = -1;         ///< of an output: the input, as long as it, that it may lie on; -1: none

  std::size_t size_bytes() const { return static_cast<std::size_t>(elements) * info(dtype).size_bytes; }
};

/// What the occupancy model must know of a policy on a problem.
struct WorkShape {
  int block_threads = 0;
  std::uint32_t dynamic_smem_bytes = 0;
  std::int64_t tiles = 1;  ///< of the grid-stride loop over the problem
  std::int64_t bytes_in_flight_per_block = 0;
  bool one_block = false;               ///< the grid is a single block, or a single cluster of cluster_blocks
  int launches = 1;                     ///< kernels per call
  bool uses_last_block_ticket = false;  ///< the last block combines partials: a ticket, a fence and a reload
  bool dependent_launch = false;        ///< launches overlap those ahead in the stream (Launch::dependent_launch)
  int cluster_blocks = 1;               ///< blocks of a thread-block cluster
  double traffic = 1;  ///< bytes of DRAM traffic ÷ KernelFamily::bytes_moved(): above 1 where elements are read twice

  /// Blocks share no output, so one block per tile is possible beside a persistent grid.
  bool independent_blocks = false;

  /// Dependent loads of the slowest thread, where threads have unequal shares; 0 where all are alike.
  double critical_path_loads = 0;

  /// Memory latencies that a block spends on pipeline fill and drain, with hardly any load in flight.
  double pipeline_fill_latencies = 0;
};

/// The start of every workspace: zero before the first launch, and left zero by every launch (a ticket that resets
/// itself). What follows is scratch that may hold anything.
inline constexpr std::size_t kWorkspaceHeaderBytes = 128;

/// Bytes of a session's workspaces, the header included: room for the partial results of 1,000 blocks of 128 columns
/// and 8 bytes each.
inline constexpr std::size_t kWorkspaceBytes = 1024 * 1024;

/// One tunable algorithm. Implementations are immutable: every method may be called from any thread at any time.
///
/// A family is pure description; Sessions do the compiling, measuring, storing and launching.
class KernelFamily {
 public:
  virtual ~KernelFamily() = default;

  /// Names the family in the cache: letters, digits and underscores.
  virtual std::string_view name() const = 0;

  /// Raise it when the meaning of a parameter changes though no source file does.
  virtual int version() const = 0;

  virtual const ParameterSpace& space() const = 0;
  virtual std::span<const std::string_view> operations() const = 0;

  /// What the extents that problems use are called, in their order; one to three. Those behind them are 1.
  virtual std::span<const std::string_view> extent_names() const;

  /// The template files that units include. Their text is part of the cache key.
  virtual std::span<const SourceFile> sources() const = 0;

  /// Why a problem makes no sense for this family ("" if it does): an unsupported dtype, a negative extent.
  virtual std::string refuse(const Problem& problem) const = 0;

  /// Why a policy cannot give right results for a class on a device ("" where it can): what the device lacks, or what
  /// the algorithm cannot do. Must not depend on compiled code.
  virtual std::string is_valid(const ProblemClass& problem_class, const Policy& policy,
                               const DeviceFacts& facts) const = 0;

  /// Why a valid policy is not worth measuring for a class on a device ("" where it is): opinions, which a search with
  /// TuneOptions::exhaustive does without. A policy that is pruned may still be a stored winner.
  virtual std::string prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const;

  /// The source that instantiates a policy. Headers are filled in from sources().
  virtual Unit unit(const ProblemClass& problem_class, const Policy& policy) const = 0;

  /// What the occupancy model predicts the time of one call from.
  virtual WorkShape shape(const Problem& problem, const Policy& policy) const = 0;

  /// Bytes that the algorithm must move through device memory: each input once, each output once.
  virtual std::int64_t bytes_moved(const Problem& problem) const = 0;

  /// Bytes of workspace, header included, that no member of the class needs more than; 0, as by default, when no launch
  /// of the candidate needs any.
  virtual std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const;

  /// The launches that answer a call. `buffers` are in the order of buffers(). On the hit path: must not allocate.
  virtual void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                      void* workspace, LaunchList& launches) const = 0;

  /// The arrays of a call, inputs first.
  virtual std::vector<BufferSpec> buffers(const Problem& problem) const = 0;

  /// Why an input that BufferSpec::is_validated cannot be right ("" if it can): offsets that descend, an index beyond
  /// the end. Asked for with all of it in host memory, on calls under SessionOptions::validate_pointers alone.
  virtual std::string refuse_contents(const Problem& problem, int buffer, std::span<const std::byte> contents) const;

  /// How results are verified before a winner is stored. The Verifier lives as long as the family. By default one that
  /// cannot tell what is right: tunings of the family need TuningOptions::verify off.
  virtual const Verifier& verifier() const;
};

/// Digest of everything in a family that decides what its binaries do: name, version, space and sources.
std::string family_digest(const KernelFamily& family);

}  // namespace hone
