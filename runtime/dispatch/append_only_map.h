// AppendOnlyMap: a hash map that is read without a lock while another thread inserts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace hone {

/// Maps keys to values for the life of the map. find() takes no lock, makes no system call, does not allocate and never
/// waits, whatever is inserted meanwhile. A key that is inserted again hides its earlier value, which stays valid:
/// references never dangle. Made for keys that are inserted rarely and looked up on every call.
///
/// Open addressing with linear probing: a table has slots for twice its keys, so that a lookup reads one or two however
/// many keys there are. A full table is followed by one of twice the size; readers may still be in the old one, which
/// is kept until the map dies.
///
/// Key: equality comparable, with a member `std::uint64_t bits() const` that is equal for equal keys; the map spreads
/// them.
template <class Key, class Value>
class AppendOnlyMap {
 public:
  AppendOnlyMap() { newest_.store(&tables_.emplace_back(kFirstBits), std::memory_order_relaxed); }
  AppendOnlyMap(const AppendOnlyMap&) = delete;
  AppendOnlyMap& operator=(const AppendOnlyMap&) = delete;

  /// The newest value of `key`, or nullptr.
  const Value* find(const Key& key) const {
    const Entry* const entry = newest_.load(std::memory_order_acquire)->slot_of(key).load(std::memory_order_acquire);
    return entry ? &entry->value : nullptr;
  }

  /// Makes `value` what find(key) returns from now on. Insertions must be serialised by the caller.
  const Value& insert(const Key& key, Value value) {
    const Entry& entry = entries_.emplace_back(Entry{key, std::move(value)});
    Slot* slot = &tables_.back().slot_of(key);
    if (!slot->load(std::memory_order_relaxed)) {
      if (2 * (keys_ + 1) > tables_.back().slots.size()) slot = &grow().slot_of(key);
      ++keys_;
    }
    slot->store(&entry, std::memory_order_release);
    return entry.value;
  }

 private:
  struct Entry {
    Key key;
    Value value;
  };
  using Slot = std::atomic<const Entry*>;

  struct Table {
    explicit Table(int bits) : shift(64 - bits), slots(std::size_t{1} << bits) {}

    /// The slot that has the key, else the empty one where it belongs. Fibonacci hashing: the high bits of a product
    /// with 2^64 ÷ golden ratio depend on all bits of the key.
    const Slot& slot_of(const Key& key) const {
      std::size_t at = static_cast<std::size_t>(key.bits() * 0x9E3779B97F4A7C15u >> shift);
      while (const Entry* const entry = slots[at].load(std::memory_order_acquire)) {
        if (entry->key == key) break;
        at = (at + 1) % slots.size();
      }
      return slots[at];
    }
    Slot& slot_of(const Key& key) { return const_cast<Slot&>(std::as_const(*this).slot_of(key)); }

    int shift;
    std::vector<Slot> slots;
  };

  static constexpr int kFirstBits = 7;

  /// Readers see the larger table when all that was inserted so far is in it.
  Table& grow() {
    const Table& full = tables_.back();
    Table& larger = tables_.emplace_back(64 - full.shift + 1);
    for (const Slot& slot : full.slots)
      if (const Entry* const entry = slot.load(std::memory_order_relaxed))
        larger.slot_of(entry->key).store(entry, std::memory_order_relaxed);
    newest_.store(&larger, std::memory_order_release);
    return larger;
  }

  std::deque<Entry> entries_;  ///< never moved, nor removed
  std::deque<Table> tables_;   ///< the newest last
  std::atomic<const Table*> newest_;
  std::size_t keys_ = 0;
};

}  // namespace hone
