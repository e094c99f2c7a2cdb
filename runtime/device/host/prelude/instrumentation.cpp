// Linked into modules that are compiled for a check. Compilers instrument code for ThreadSanitizer and for
// UndefinedBehaviorSanitizer by calls of the functions below; here they tell the engine, and no sanitizer is needed.
#include "host_abi.h"

using hone_host::AccessKind;

extern "C" {

[[gnu::visibility("default")]] hone_host::Hooks hone_host_hooks = {};

// --- -fsanitize=thread: __tsan_…, one call for each access of memory ---

#define HONE_SEE(address, bytes, kind) \
  (hone_host_hooks.on_access ? hone_host_hooks.on_access(address, bytes, kind, __builtin_return_address(0)) : void())

#define HONE_ACCESSES(prefix, bytes) \
  void __tsan_##prefix##read##bytes(void* at) { HONE_SEE(at, bytes, AccessKind::read); } \
  void __tsan_##prefix##write##bytes(void* at) { HONE_SEE(at, bytes, AccessKind::write); }
#define HONE_ACCESSES_OF_EVERY_SIZE(prefix) \
  HONE_ACCESSES(prefix, 1) \
  HONE_ACCESSES(prefix, 2) HONE_ACCESSES(prefix, 4) HONE_ACCESSES(prefix, 8) HONE_ACCESSES(prefix, 16)
HONE_ACCESSES_OF_EVERY_SIZE()
HONE_ACCESSES_OF_EVERY_SIZE(unaligned_)
HONE_ACCESSES_OF_EVERY_SIZE(volatile_)
HONE_ACCESSES_OF_EVERY_SIZE(unaligned_volatile_)

void __tsan_read_range(void* at, unsigned long bytes) { HONE_SEE(at, bytes, AccessKind::read); }
void __tsan_write_range(void* at, unsigned long bytes) { HONE_SEE(at, bytes, AccessKind::write); }

void* __tsan_memset(void* to, int value, unsigned long bytes) {
  HONE_SEE(to, bytes, AccessKind::write);
  return __builtin_memset(to, value, bytes);
}
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  HONE_SEE(from, bytes, AccessKind::read);
  HONE_SEE(to, bytes, AccessKind::write);
  return __builtin_memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  HONE_SEE(from, bytes, AccessKind::read);
  HONE_SEE(to, bytes, AccessKind::write);
  return __builtin_memmove(to, from, bytes);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

#define HONE_FETCH(bits, type, operation) \
  type __tsan_atomic##bits##_fetch_##operation(volatile type* at, type value, int) { \
    HONE_SEE(const_cast<type*>(at), bits / 8, AccessKind::atomic); \
    return __atomic_fetch_##operation(at, value, __ATOMIC_SEQ_CST); \
  }
#define HONE_COMPARE_EXCHANGE(bits, type, name) \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type* at, type* expected, type value, int, int) { \
    HONE_SEE(const_cast<type*>(at), bits / 8, AccessKind::atomic); \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define HONE_ATOMICS(bits, type) \
  type __tsan_atomic##bits##_load(const volatile type* at, int) { \
    HONE_SEE(const_cast<const type*>(at), bits / 8, AccessKind::atomic); \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
  } \
  void __tsan_atomic##bits##_store(volatile type* at, type value, int) { \
    HONE_SEE(const_cast<type*>(at), bits / 8, AccessKind::atomic); \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST); \
  } \
  type __tsan_atomic##bits##_exchange(volatile type* at, type value, int) { \
    HONE_SEE(const_cast<type*>(at), bits / 8, AccessKind::atomic); \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
  } \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* at, type expected, type value, int, int) { \
    HONE_SEE(const_cast<type*>(at), bits / 8, AccessKind::atomic); \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return expected; \
  } \
  HONE_COMPARE_EXCHANGE(bits, type, strong) HONE_COMPARE_EXCHANGE(bits, type, weak) \
  HONE_FETCH(bits, type, add) HONE_FETCH(bits, type, sub) HONE_FETCH(bits, type, and) \
  HONE_FETCH(bits, type, or) HONE_FETCH(bits, type, xor) HONE_FETCH(bits, type, nand)
HONE_ATOMICS(8, unsigned char)
HONE_ATOMICS(16, unsigned short)
HONE_ATOMICS(32, unsigned)
HONE_ATOMICS(64, unsigned long)

// --- -fsanitize=signed-integer-overflow and the like: __ubsan_…, called where an operation is undefined ---

/// As compilers lay it out. Of an integer, bit 0 of `info` says that it is signed, and the others are the binary
/// logarithm of its bits; of a float, `info` is the number of its bits.
struct UbsanType {
  unsigned short kind, info;
  char name[1];
};
struct UbsanOverflow {
  const char* file;
  unsigned line, column;
  const UbsanType* type;
};

struct UbsanBadIndex {
  const char* file;
  unsigned line, column;
  const UbsanType *array, *index;
};
struct UbsanBadShift {
  const char* file;
  unsigned line, column;
  const UbsanType *operand, *distance;
};
struct UbsanBadConversion {
  const char* file;
  unsigned line, column;
  const UbsanType *from, *to;
};
struct UbsanPlace {
  const char* file;
  unsigned line, column;
};

static int bits_of(const UbsanType* type) { return 1 << (type->info >> 1); }

/// Wider values than 64 bits are passed by address; their numbers are not shown.
static long long value_of(const UbsanType* type, unsigned long word) {
  const int bits = bits_of(type);
  if ((type->info & 1) == 0) return bits > 64 ? 0LL : static_cast<long long>(word);
  return bits > 64 ? 0LL : static_cast<long long>(word << (64 - bits)) >> (64 - bits);
}

/// The same of a float.
static double float_of(const UbsanType* type, unsigned long word) {
  if (type->info == 32) return __builtin_bit_cast(float, static_cast<unsigned>(word));
  return type->info == 64 ? __builtin_bit_cast(double, word) : 0;
}

static void overflow(const UbsanOverflow* data, char operation, unsigned long left, unsigned long right) {
  if (!hone_host_hooks.on_overflow) return;
  hone_host_hooks.on_overflow({{data->file, static_cast<int>(data->line)},
                               operation,
                               data->type->name,
                               value_of(data->type, left),
                               value_of(data->type, right)});
}

void __ubsan_handle_out_of_bounds(UbsanBadIndex* data, unsigned long index) {
  if (!hone_host_hooks.on_bad_index) return;
  hone_host_hooks.on_bad_index(
      {{data->file, static_cast<int>(data->line)}, data->array->name, value_of(data->index, index)});
}

void __ubsan_handle_shift_out_of_bounds(UbsanBadShift* data, unsigned long, unsigned long distance) {
  if (!hone_host_hooks.on_bad_shift) return;
  hone_host_hooks.on_bad_shift({{data->file, static_cast<int>(data->line)},
                                data->operand->name,
                                bits_of(data->operand),
                                value_of(data->distance, distance)});
}

void __ubsan_handle_float_cast_overflow(UbsanBadConversion* data, unsigned long from) {
  if (!hone_host_hooks.on_bad_conversion) return;
  hone_host_hooks.on_bad_conversion(
      {{data->file, static_cast<int>(data->line)}, data->to->name, float_of(data->from, from)});
}

static void dead_end(const UbsanPlace* data, bool owes_result) {
  if (hone_host_hooks.on_dead_end)
    hone_host_hooks.on_dead_end({{data->file, static_cast<int>(data->line)}, owes_result});
  __builtin_trap();  // compilers have put nothing behind it
}

void __ubsan_handle_missing_return(UbsanPlace* data) { dead_end(data, true); }
void __ubsan_handle_builtin_unreachable(UbsanPlace* data) { dead_end(data, false); }

void __ubsan_handle_add_overflow(UbsanOverflow* data, unsigned long left, unsigned long right) {
  overflow(data, '+', left, right);
}
void __ubsan_handle_sub_overflow(UbsanOverflow* data, unsigned long left, unsigned long right) {
  overflow(data, '-', left, right);
}
void __ubsan_handle_mul_overflow(UbsanOverflow* data, unsigned long left, unsigned long right) {
  overflow(data, '*', left, right);
}
void __ubsan_handle_divrem_overflow(UbsanOverflow* data, unsigned long left, unsigned long right) {
  overflow(data, '/', left, right);
}
void __ubsan_handle_negate_overflow(UbsanOverflow* data, unsigned long value) { overflow(data, '~', value, 0); }

}  // extern "C"
