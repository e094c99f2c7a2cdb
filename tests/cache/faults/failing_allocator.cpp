#include "tests/cache/faults/failing_allocator.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "tests/cache/faults/campaign.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) static_cast<void>(0)
#endif

namespace hone::cache {
namespace {

struct Plan {
  bool is_active = false;
  long asked = 0;
  long number = 0;
  Persistence persistence = Persistence::once;
};

thread_local constinit Plan plan;

bool fails() {
  if (!plan.is_active) return false;
  const long number = plan.asked++;
  return number == plan.number || (number > plan.number && plan.persistence == Persistence::for_good);
}

sqlite3_mem_methods defaults;

/// Memory that is handed out from front to back, and taken back when all of it is free again. What is not handed out,
/// what was given back and the gaps between are poisoned: AddressSanitizer reports who touches them.
class Arena {
 public:
  bool is_active = false;

  void* allocate(int size) {
    if (!is_active) return nullptr;
    if (live_ == 0 && used_ > 0) {
      ASAN_POISON_MEMORY_REGION(bytes_, used_);
      used_ = 0;
    }
    if (bytes_ == nullptr) {
      bytes_ = static_cast<std::byte*>(std::malloc(kBytes));
      if (bytes_ == nullptr) return nullptr;
      ASAN_POISON_MEMORY_REGION(bytes_, kBytes);
    }
    const std::size_t whole = kGap + (static_cast<std::size_t>(size) + kGap - 1) / kGap * kGap + kGap;
    if (used_ + whole > kBytes) return nullptr;
    std::byte* const memory = bytes_ + used_ + kGap;
    ASAN_UNPOISON_MEMORY_REGION(memory - kGap, sizeof(int));
    std::memcpy(memory - kGap, &size, sizeof(size));
    ASAN_POISON_MEMORY_REGION(memory - kGap, sizeof(int));
    ASAN_UNPOISON_MEMORY_REGION(memory, static_cast<std::size_t>(size));
    used_ += whole;
    ++live_;
    return memory;
  }

  bool has(const void* memory) const {
    return bytes_ != nullptr && memory >= bytes_ && memory < bytes_ + kBytes;
  }

  int size_of(void* memory) const {
    std::byte* const before = static_cast<std::byte*>(memory) - kGap;
    int size = 0;
    ASAN_UNPOISON_MEMORY_REGION(before, sizeof(int));
    std::memcpy(&size, before, sizeof(size));
    ASAN_POISON_MEMORY_REGION(before, sizeof(int));
    return size;
  }

  void free([[maybe_unused]] void* memory) {
    ASAN_POISON_MEMORY_REGION(memory, static_cast<std::size_t>(size_of(memory)));
    --live_;
  }

 private:
  static constexpr std::size_t kBytes = 8 << 20;  ///< a lookup takes half a MiB
  static constexpr std::size_t kGap = 16;

  std::byte* bytes_ = nullptr;  ///< for the life of the process, as SQLite may give back late
  std::size_t used_ = 0;
  long live_ = 0;
};

Arena arena;

void* allocate(int size) {
  if (fails()) return nullptr;
  void* const memory = arena.allocate(size);
  return memory != nullptr ? memory : defaults.xMalloc(size);
}

void release(void* memory) {
  if (arena.has(memory)) arena.free(memory);
  else defaults.xFree(memory);
}

int size_of(void* memory) { return arena.has(memory) ? arena.size_of(memory) : defaults.xSize(memory); }

void* reallocate(void* memory, int size) {
  if (fails()) return nullptr;
  if (!arena.has(memory)) return defaults.xRealloc(memory, size);
  void* moved = arena.allocate(size);
  if (moved == nullptr) moved = defaults.xMalloc(size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, memory, static_cast<std::size_t>(std::min(size, arena.size_of(memory))));
  arena.free(memory);
  return moved;
}

/// Must happen before SQLite is used for the first time.
bool install() {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &defaults);
  sqlite3_mem_methods methods = defaults;
  methods.xMalloc = allocate;
  methods.xFree = release;
  methods.xRealloc = reallocate;
  methods.xSize = size_of;
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK;
}

const bool is_installed = install();

void* allocate_for_new(std::size_t size) {
  void* const memory = fails() ? nullptr : std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

AllocationFailure::AllocationFailure(long number, Persistence persistence) {
  if (!is_installed) throw std::logic_error("SQLite was used before its allocator could be replaced");
  plan = {true, 0, number, persistence};
}

AllocationFailure::~AllocationFailure() { plan.is_active = false; }

long AllocationFailure::asked() const { return plan.asked; }

CheapAllocations::CheapAllocations() { arena.is_active = is_installed && is_sanitized(); }
CheapAllocations::~CheapAllocations() { arena.is_active = false; }

}  // namespace hone::cache

void* operator new(std::size_t size) { return hone::cache::allocate_for_new(size); }
void* operator new[](std::size_t size) { return hone::cache::allocate_for_new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
