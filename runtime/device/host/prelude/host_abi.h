// A compiled kernel and the host device's engine know this of each other. Both include it, hence free of headers.
#pragma once

namespace hone_host {

/// Raise it when anything below changes: a stored binary of another version is refused.
inline constexpr int kAbiVersion = 5;

/// Each lane (CUDA thread) has a stack of this size. The stacks of one SM lie side by side in an arena that is aligned
/// to its own size, so that the stack pointer alone leads to the block: no thread-local variable is needed, and none
/// can be cached across a switch.
inline constexpr unsigned long kStackBytes = 64 * 1024;
inline constexpr unsigned long kMaxLanes = 1024;
inline constexpr unsigned long kArenaBytes = kMaxLanes * kStackBytes;

/// All parameters of a kernel together: hone::Arguments::kBytes.
inline constexpr unsigned long kMostParameterBytes = 160;

struct Index3 {
  unsigned x, y, z;
};

/// A place in the kernel's source.
struct Site {
  const char* file;
  int line;
};

enum class BarrierOp : int { sync, count, all, any };

enum class FenceScope : int { block, device };

enum class WarpOp : int {
  sync,
  shuffle_index,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  vote_any,
  vote_all,
  ballot,
  match_any,
  match_all,
  reduce_add,
  reduce_min_signed,
  reduce_max_signed,
  reduce_min_unsigned,
  reduce_max_unsigned,
  reduce_and,
  reduce_or,
  reduce_xor,
};

/// One lane's part in a warp operation; lies on the lane's stack while it waits.
struct WarpCall {
  WarpOp op;
  unsigned mask;
  unsigned bytes;  ///< size of the operand's type: lanes must agree on it
  int argument;    ///< shuffles: source lane, delta or lane mask
  int width;       ///< shuffles: lanes in a segment
  unsigned long long value;
  unsigned long long result;
  int all_match;  ///< match_all: the predicate
  Site site;
};

/// Bytes that are on their way to the block's shared memory.
struct AsyncCopy {
  void* to;
  const void* from;
  unsigned bytes;
  unsigned long long* landed;  ///< gets 1 added when they are there; null: the copy belongs to a group of its lane
  Site site;                   ///< where it was started
};

/// Kernels ask this of the engine.
struct Services {
  unsigned (*barrier)(BarrierOp op, bool predicate, Site site);
  void (*warp_op)(WarpCall* call);
  void (*fence)(FenceScope scope);
  void (*poll)(Site site);  ///< now and then from atomics and fences, so that an endless wait is noticed
  void (*trap)(Site site);
  void (*assertion_failed)(const char* expression, Site site);
  unsigned long long (*nanoseconds)();

  // Only if BlockView::copies_land_late:
  void (*start_copy)(const AsyncCopy& copy);
  void (*end_copy_group)();
  void (*wait_for_copy_groups)(unsigned left);
};

enum class AccessKind : int { read, write, atomic };

/// A signed operation whose exact result its type cannot hold. `right` means nothing for a negation, '~'.
struct Overflow {
  Site site;
  char operation;
  const char* type;  ///< "'int'"
  long long left, right;
};

/// An index that the declared bounds of an array do not contain.
struct BadIndex {
  Site site;
  const char* array;  ///< "'float [64]'"
  long long index;
};

/// A shift by less than 0, or by as many bits as its operand has.
struct BadShift {
  Site site;
  const char* type;  ///< "'int'", of the operand
  int bits;          ///< that it has
  long long distance;
};

/// A float whose whole part the integer that it becomes cannot hold.
struct BadConversion {
  Site site;
  const char* type;  ///< "'int'", of the integer
  double value;
};

/// A place that must not be reached: the end of a function that owes a result, or __builtin_unreachable().
struct DeadEnd {
  Site site;
  bool owes_result;
};

/// The engine hears this of a module that was compiled for a check (instrumentation.cpp), which has them under the name
/// hone_host_hooks; null until they are set.
struct Hooks {
  void (*on_access)(const void* address, unsigned long bytes, AccessKind kind, const void* return_address);
  void (*on_overflow)(const Overflow& overflow);
  void (*on_bad_index)(const BadIndex& bad);
  void (*on_bad_shift)(const BadShift& bad);
  void (*on_bad_conversion)(const BadConversion& bad);
  void (*on_dead_end)(const DeadEnd& end);
};

struct LaneView {
  Index3 thread;
};

/// Kernels may see this of the block that runs. The word at the start of the arena points to it.
struct BlockView {
  const LaneView* lane;  ///< the lane that runs now
  Index3 block, block_extent, grid_extent;
  const Services* services;
  unsigned polls;
  bool copies_land_late;  ///< asynchronous copies are the engine's
};

[[gnu::always_inline]] inline BlockView& this_block() {
  const unsigned long stack = reinterpret_cast<unsigned long>(__builtin_frame_address(0));
  return **reinterpret_cast<BlockView**>(stack & ~(kArenaBytes - 1));
}

/// One kernel of a module. `call` unpacks the arguments and runs one lane.
struct Entry {
  const char* name;
  void (*call)(void* const* arguments);
  int parameters;
  const int* parameter_bytes;  ///< of each
};

/// A module exports this, under the name hone_host_module.
struct ModuleDescriptor {
  int abi_version;
  const char* unit_name;
  const Entry* entries;
  int entry_count;
  /// The calling thread's dynamic shared memory, which ends the module's thread-local segment. Static shared memory
  /// comes before it.
  unsigned char* (*dynamic_smem)();
  const unsigned long long* dynamic_smem_bytes;  ///< as reserved; 1 when the unit declares none
};

}  // namespace hone_host
