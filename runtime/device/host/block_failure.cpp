#include "runtime/device/host/block_failure.h"

#include <fmt/format.h>

#include <string_view>

namespace hone {
namespace {

using Kind = BlockFailure::Kind;

std::string spell(const hone_host::Index3& i) { return fmt::format("({},{},{})", i.x, i.y, i.z); }

std::string spell(const hone_host::Overflow& overflow) {
  if (overflow.operation == '~') return fmt::format("-({}) does not fit {}", overflow.left, overflow.type);
  return fmt::format("{} {} {} does not fit {}", overflow.left, overflow.operation, overflow.right, overflow.type);
}

std::string what_was_found(const BlockFailure& f) {
  switch (f.kind) {
    case Kind::none: return "nothing";
    case Kind::divergent_barrier: return "divergent __syncthreads(): threads of one block wait at different ones";
    case Kind::barrier_without_all: return "divergent __syncthreads(): a thread has left that the others wait for";
    case Kind::mask_omits_caller:
      return fmt::format("warp operation whose mask {:#010x} omits the calling lane", f.mask);
    case Kind::mask_names_absent_lanes:
      return fmt::format("warp operation whose mask {:#010x} names lanes that have exited or do not exist ({:#010x})",
                         f.mask, f.other_mask);
    case Kind::lane_left_warp_op:
      return fmt::format("warp operation with mask {:#010x} waits for a lane that has exited", f.mask);
    case Kind::warp_op_mismatch:
      return fmt::format("lanes wait for each other in different warp operations or with different masks "
                         "({:#010x} and {:#010x})", f.mask, f.other_mask);
    case Kind::shuffle_from_outside:
      return fmt::format("shuffle reads lane {} of the warp, which is not in the mask {:#010x}", f.source_lane, f.mask);
    case Kind::shuffle_width: return fmt::format("shuffle of width {}", static_cast<std::int64_t>(f.number));
    case Kind::deadlock: return "deadlock: every thread that is left waits";
    case Kind::stack_overflow: return fmt::format("a thread overflowed its stack of {} bytes", f.number);
    case Kind::wild_access:
      return fmt::format("a thread accessed the address {:#x}, where there is no memory for it", f.number);
    case Kind::arithmetic_fault: return "a thread divided an integer by zero";
    case Kind::undefined_operation:
      return "a thread came to an operation that the compiler knew to be undefined, such as a division by a constant 0";
    case Kind::signed_overflow: return "signed overflow: " + spell(f.overflow);
    case Kind::bad_index:
      return fmt::format("index {} is out of bounds of an array {}", f.bad_index.index, f.bad_index.array);
    case Kind::bad_shift:
      return fmt::format("shift by {} of {} of {} bits", f.bad_shift.distance, f.bad_shift.type, f.bad_shift.bits);
    case Kind::bad_conversion:
      return fmt::format("conversion of {} to {}, which cannot hold it", f.bad_conversion.value,
                         f.bad_conversion.type);
    case Kind::dead_end:
      return f.dead_end.owes_result ? "a function ended without the result that it owes"
                                    : "a thread came to __builtin_unreachable()";
    case Kind::dynamic_smem_overrun:
      return fmt::format("dynamic shared memory was written beyond the {} bytes of the launch", f.number);
    case Kind::copies_in_flight:
      return fmt::format("the block ended with {} asynchronous {} in flight", f.number,
                         f.number == 1 ? "copy" : "copies");
    case Kind::copy_leaves_smem:
      return fmt::format("an asynchronous copy of {} bytes leaves the shared memory of the block", f.number);
    case Kind::trap: return "__trap()";
    case Kind::assertion: return fmt::format("assertion `{}` failed", f.text);
    case Kind::deadline:
      return fmt::format("the block still spins after {} ms: it waits for something that does not come", f.number);
    case Kind::endless_lane:
      return fmt::format("a thread has run for {} ms without meeting others", f.number);
    case Kind::endless_block: return fmt::format("the block has run for {} ms", f.number);
  }
  return "unknown failure";
}

std::string_view what_to_do(const BlockFailure& f) {
  switch (f.kind) {
    case Kind::divergent_barrier:
    case Kind::barrier_without_all:
      return "let every thread of the block reach the same __syncthreads(), or none";
    case Kind::mask_omits_caller:
    case Kind::mask_names_absent_lanes:
    case Kind::lane_left_warp_op:
    case Kind::warp_op_mismatch:
      return "let every lane that the mask names call the same operation with the same mask; keep idle lanes and give "
             "them the identity instead of letting them return early";
    case Kind::shuffle_from_outside: return "read from lanes of the mask only";
    case Kind::shuffle_width: return "use 1, 2, 4, 8, 16 or 32";
    case Kind::deadlock: return "let all threads that wait for each other reach the same meeting point";
    case Kind::stack_overflow: return "use smaller local arrays and less recursion";
    case Kind::wild_access:
      return "compare indices with the sizes of the buffers, and arguments with the kernel's parameters";
    case Kind::undefined_operation:
      return "look for an index, a divisor or a shift that is a constant and wrong, and for a function that ends "
             "without its return";
    case Kind::arithmetic_fault: return "a GPU gives some value instead; do not divide where the divisor is 0";
    case Kind::signed_overflow:
      return "compute it in a wider type, as (long long)y * width + x does, or in an unsigned one if it shall wrap";
    case Kind::bad_index:
      return "compare the index with the size of the array; a pointer to its first element may go through all rows of "
             "an array of several dimensions";
    case Kind::bad_shift:
      return "a GPU gives another value than this processor; shift by 0 or more, and by less than the bits of the type";
    case Kind::bad_conversion:
      return "a GPU gives another value than this processor; compare it with the range of the type first, or convert "
             "by __float2int_rz() or the like, which give the nearest value of the type, and 0 for NaN";
    case Kind::dead_end:
      return f.dead_end.owes_result ? "return a value on every path"
                                    : "look for the case that was taken for impossible";
    case Kind::dynamic_smem_overrun: return "launch with enough dynamic shared memory, or index less";
    case Kind::copies_in_flight:
      return "let a thread wait for each copy that was started, though its bytes may not be needed: they land in what "
             "is the shared memory of another block by then";
    case Kind::copy_leaves_smem:
      return "compare the address and the bytes with the array, and with the dynamic shared memory of the launch";
    case Kind::deadline:
      return "blocks are not guaranteed to run at the same time: do not let one wait for another that starts later";
    case Kind::endless_lane:
      return "threads take turns at barriers, warp operations and atomics only: let a loop that waits for another "
             "thread spin on an atomic, and let every other loop end";
    case Kind::endless_block: return "let its loops end";
    default: return "";
  }
}

/// True if a thread was stopped by a signal, and not in an operation that knows its line.
bool is_without_line(const BlockFailure& f) {
  return f.kind == Kind::wild_access || f.kind == Kind::undefined_operation;
}

}  // namespace

std::string describe(const BlockFailure& failure, const std::string& kernel, bool is_checked,
                     const std::string& details) {
  std::string text = fmt::format("the host device stopped kernel {} in block {}: {}", kernel, spell(failure.block),
                                 what_was_found(failure));
  for (int i = 0; i < failure.lane_count; ++i) {
    const LaneReport& lane = failure.lanes[static_cast<std::size_t>(i)];
    text += fmt::format("\n  thread {} {}", spell(lane.thread), lane.what);
    if (lane.site.file != nullptr) text += fmt::format(" {}:{}", lane.site.file, lane.site.line);
  }
  text += details;
  const std::string_view advice = what_to_do(failure);
  if (!advice.empty()) text += fmt::format("\n  {}", advice);
  if (!is_checked && is_without_line(failure)) text += "; hone check finds the source line";
  return text;
}

}  // namespace hone
