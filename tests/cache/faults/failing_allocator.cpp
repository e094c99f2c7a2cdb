#include "tests/cache/faults/failing_allocator.h"

#include <sqlite3.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

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

void* allocate(int size) { return fails() ? nullptr : defaults.xMalloc(size); }
void* reallocate(void* memory, int size) { return fails() ? nullptr : defaults.xRealloc(memory, size); }

/// Must happen before SQLite is used for the first time.
bool install() {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &defaults);
  sqlite3_mem_methods methods = defaults;
  methods.xMalloc = allocate;
  methods.xRealloc = reallocate;
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

}  // namespace hone::cache

void* operator new(std::size_t size) { return hone::cache::allocate_for_new(size); }
void* operator new[](std::size_t size) { return hone::cache::allocate_for_new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
