// KernelFamily: one tunable algorithm. Built-in families and those of programs implement the same interface.
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
#include <hone/reason.h>
#include <hone/verifier.h>

namespace hone {

/// One array that a call reads or writes.
struct BufferSpec {
  std::string_view name;
  bool is_input = true;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::uint32_t alignment = 0;  ///< bytes that its address is a multiple of; 0: Problem::alignment for an input, the
                                ///< size of an element for an output
  bool is_validated = false;    ///< an input that KernelFamily::refuse_contents() checks
  int in_place_of = -1;         ///< the input, of equal size, that this output may overwrite in place; -1: none
  bool is_updated = false;      ///< an input that the call also writes, so that it counts among the outputs, too

  std::size_t size_bytes() const { return static_cast<std::size_t>(elements) * info(dtype).size_bytes; }
};

/// The properties of a policy on a problem from which the occupancy model predicts a time.
struct WorkShape {
  int block_threads = 0;
  int most_block_threads = 0;  ///< if other problems of the class are launched with more, or fewer; 0: all with as many
  std::uint32_t dynamic_smem_bytes = 0;
  std::int64_t tiles = 1;  ///< tiles of the grid-stride loop over the problem
  std::int64_t bytes_in_flight_per_block = 0;
  int loading_threads = 0;              ///< threads of a block that have loads in flight; 0: all
  int local_array_bytes = 0;            ///< local memory of a thread that is no spilled registers: an array
  bool one_block = false;               ///< the grid is a single block, or a single cluster of cluster_blocks
  int launches = 1;                     ///< kernels per call
  bool uses_last_block_ticket = false;  ///< the last block combines partials: a ticket, a fence and a reload
  bool dependent_launch = false;        ///< launches overlap those ahead in the stream (Launch::dependent_launch)
  int cluster_blocks = 1;               ///< blocks of a thread-block cluster
  bool cooperative = false;             ///< blocks wait for each other, one on each SM (Launch::cooperative)
  double traffic = 1;  ///< bytes of DRAM traffic ÷ KernelFamily::bytes_moved(): above 1 if elements are read twice

  /// The part of `traffic` that is read for the second time. L2 serves it as far as it holds what is read in between:
  /// so many bytes, and so many tiles of each block, of bytes_in_flight_per_block.
  double reread_traffic = 0;
  std::int64_t reread_distance_bytes = 0;
  std::int64_t reread_distance_tiles = 0;

  /// Each block holds up to so many of a row's reread_distance_bytes, if not 0. If blocks do not hold all of them, the
  /// rest is read again, what was read last first, through bytes_in_flight_per_block of what each holds.
  std::int64_t held_bytes_per_block = 0;
  std::int64_t held_rows = 0;  ///< that blocks hold, one after the other

  /// Blocks share no output, so the grid may have one block per tile instead of being persistent.
  bool independent_blocks = false;

  /// A block loads its next tile while it works on one, so that one block per tile is slower.
  bool loads_ahead = false;

  /// The kernel does not loop over tiles, so the grid must have one block per tile.
  bool one_block_per_tile = false;

  /// The dependent loads of the slowest thread, if threads have unequal shares; 0 if all shares are equal.
  double critical_path_loads = 0;

  /// The memory latencies between one tile of the call and the next, whichever blocks take them: of a counter that all
  /// of them increment.
  double latencies_between_tiles = 0;

  /// The memory latencies that a block spends on pipeline fill and drain, with hardly any load in flight; that of a
  /// cluster does so in each tile.
  double pipeline_fill_latencies = 0;

  /// The memory latencies that pass between the loads of one tile and those of the block's next: 1 if a tile is loaded,
  /// used and left; more if its addresses are loaded first, or if the block's threads wait for each other.
  double round_latencies = 1;
  double lone_round_latencies = 0;  ///< instead of these where all tiles are loaded in one round of blocks; 0: the same

  /// The most that a thread takes through its registers, loads and stores together; 0: loads and stores alone limit it.
  double thread_gbps = 0;

  /// What each SM of a cluster draws whose blocks load and store in turn, so that memory idles meanwhile where clusters
  /// are few; 0: they do not.
  double cluster_sm_gbps = 0;

  /// The instructions that a thread issues for each byte that it loads, as far as they are not hidden behind loads; 0:
  /// too few to count.
  double instructions_per_byte = 0;

  /// The threads that combine the partials of all blocks; 0: block_threads.
  int combining_threads = 0;

  /// The memory latencies of each round in which they take a partial each; 0: no more than one load.
  double combining_latencies = 0;

  std::int64_t threads_that_load() const { return loading_threads > 0 ? loading_threads : block_threads; }
};

/// The bytes at the start of every workspace that are zero before the first launch, and that every launch leaves zero:
/// the place of tickets, which reset themselves. The rest of a workspace is scratch and may hold anything.
inline constexpr std::size_t kWorkspaceHeaderBytes = 128;

/// The bytes of a workspace, header included: room for partials of 1,000 blocks with 128 columns of 8 bytes each.
inline constexpr std::size_t kWorkspaceBytes = 1024 * 1024;

/// Describes one tunable algorithm. Sessions compile, measure, store and launch it. Implementations are immutable: any
/// thread may call any method at any time. A family must outlive every Session that sees a problem of it.
class KernelFamily {
 public:
  virtual ~KernelFamily() = default;

  /// The name of the family in the cache: letters, digits and underscores.
  virtual std::string_view name() const = 0;

  /// The version, part of the cache key. Raise it if the meaning of a parameter changes though no source does.
  virtual int version() const = 0;

  virtual const ParameterSpace& space() const = 0;

  /// The names of the operations; Problem::operation is an index into them.
  virtual std::span<const std::string_view> operations() const = 0;

  /// The names of the one to three extents that problems use; further extents are 1. By default "n".
  virtual std::span<const std::string_view> extent_names() const;

  /// The names of the numbers that problems have (Problem::scalars), for messages. By default none has a name.
  virtual std::span<const std::string_view> scalar_names() const { return {}; }

  /// The template files that units may include. Their text is part of the cache key.
  virtual std::span<const SourceFile> sources() const = 0;

  /// Returns the reason why this family refuses a problem, such as an unsupported dtype or a negative extent; "" if it
  /// accepts it.
  virtual std::string refuse(const Problem& problem) const = 0;

  /// True if this family has kernels for Numerics::reproducible of the problem. Refused otherwise (refusal_of()). By
  /// default false.
  virtual bool offers_reproducible(const Problem&) const { return false; }

  /// Why a policy cannot give right results for a class on a device (none where it can): what the device lacks, or what
  /// the algorithm cannot do. Must not depend on compiled code. A text will do: return "needs two rows".
  virtual Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const = 0;

  /// Why a valid policy is not worth measuring for a class on a device (none where it is): opinions, which a search
  /// with TuningOptions::exhaustive does without. A policy that is pruned may still be a stored winner.
  virtual Reason prune(const ProblemClass&, const Policy&, const DeviceFacts&) const { return {}; }

  /// The unit that instantiates a policy. Unit::headers is filled in from sources().
  virtual Unit unit(const ProblemClass& problem_class, const Policy& policy) const = 0;

  /// True if `of_policy`, the policy's unit for some class, is right for this problem too, so that a small problem can
  /// tell whether it works: where this problem's class has the same unit, and where the family knows better.
  virtual bool is_served_by(const Problem& problem, const Policy& policy, const Unit& of_policy) const {
    return unit(problem, policy).has_code_of(of_policy);
  }

  /// The input of the occupancy model for one call.
  virtual WorkShape shape(const Problem& problem, const Policy& policy) const = 0;

  /// The bytes that the algorithm must move through device memory: each input once, each output once.
  virtual std::int64_t bytes_moved(const Problem& problem) const = 0;

  /// A text that is equal for problems of this family whose elements cost about as much arithmetic, such as those of
  /// max and min, or of sums of f32 and i32. If two such problems move as many bytes, the winner of one may serve the
  /// other that has none (Loan::operation). By default "": no other operation or dtype lends.
  virtual std::string arithmetic(const Problem&) const { return ""; }

  /// The most bytes of workspace, header included, that a member of the class needs; 0 if no launch of the candidate
  /// needs a workspace. By default 0.
  virtual std::size_t workspace_bytes(const ProblemClass&, const Candidate&) const { return 0; }

  /// Appends the launches of a call to `launches`. `buffers` are in the order of buffers(). Runs on every hit: must not
  /// allocate.
  virtual void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                      void* workspace, LaunchList& launches) const = 0;

  /// The arrays of a call, inputs first.
  virtual std::vector<BufferSpec> buffers(const Problem& problem) const = 0;

  /// Returns the fault in the contents of an input that BufferSpec::is_validated, such as descending offsets; "" if
  /// there is none. `contents` are all of it, in host memory. Called only under SessionOptions::validate_pointers. By
  /// default "".
  virtual std::string refuse_contents(const Problem&, int /*buffer*/, std::span<const std::byte> /*contents*/) const {
    return "";
  }

  /// The Verifier that checks results before a winner is stored; it lives as long as the family. The default one knows
  /// no right result, so tunings need TuningOptions::verify off.
  virtual const Verifier& verifier() const;
};

/// Why no session takes a problem ("" if it does): its family refuses it, or does not offer its numerics.
std::string refusal_of(const Problem& problem);

/// The digest of all that decides what the binaries of a family do: name, version, space and sources.
std::string family_digest(const KernelFamily& family);

}  // namespace hone
