// AllocationFailure: makes the N-th allocation of SQLite or of C++ fail, once or from then on; CheapAllocations: lets
// those of SQLite cost less under AddressSanitizer.
#pragma once

namespace hone::cache {

enum class Persistence { once, for_good };

/// While it lives, allocations of this thread are counted, and the one with this number (from 0) fails: SQLite is told
/// that there is no memory, operator new throws std::bad_alloc. One at a time.
class AllocationFailure {
 public:
  AllocationFailure(long number, Persistence persistence);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  /// How many were asked for; more than `number` means that one failed.
  long asked() const;
};

/// While it lives, SQLite's memory comes from an arena whose unused parts are poisoned: under AddressSanitizer, the
/// 2600 allocations of a lookup, most of them for parsing the schema, take half of its time. One at a time, in one
/// thread.
class CheapAllocations {
 public:
  CheapAllocations();
  ~CheapAllocations();
  CheapAllocations(const CheapAllocations&) = delete;
  CheapAllocations& operator=(const CheapAllocations&) = delete;
};

}  // namespace hone::cache
