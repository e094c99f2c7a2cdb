// AppendOnlyMap: a hash map that is read without a lock while others insert.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace hone {

/// Maps keys to values for the life of the map. find() takes no lock and makes no system call; an insertion is one
/// atomic store. A key that is inserted again hides its earlier value, which stays valid: references never dangle. Made
/// for a few thousand keys that are inserted rarely and looked up on every call.
///
/// Key: equality comparable, with a member `std::size_t hash() const`.
template <class Key, class Value>
class AppendOnlyMap {
 public:
  AppendOnlyMap() = default;
  AppendOnlyMap(const AppendOnlyMap&) = delete;
  AppendOnlyMap& operator=(const AppendOnlyMap&) = delete;

  ~AppendOnlyMap() {
    for (std::atomic<Node*>& bucket : buckets_) {
      for (Node* node = bucket.load(); node;) delete std::exchange(node, node->next);
    }
  }

  /// The newest value of `key`, or nullptr.
  const Value* find(const Key& key) const {
    for (const Node* node = bucket(key).load(std::memory_order_acquire); node; node = node->next)
      if (node->key == key) return &node->value;
    return nullptr;
  }

  /// Makes `value` what find(key) returns from now on. Insertions must be serialised by the caller.
  const Value& insert(const Key& key, Value value) {
    std::atomic<Node*>& first = bucket(key);
    auto* node = new Node{key, std::move(value), first.load(std::memory_order_relaxed)};
    first.store(node, std::memory_order_release);
    return node->value;
  }

 private:
  struct Node {
    Key key;
    Value value;
    Node* next;
  };
  static constexpr std::size_t kBuckets = 1024;

  std::atomic<Node*>& bucket(const Key& key) { return buckets_[key.hash() % kBuckets]; }
  const std::atomic<Node*>& bucket(const Key& key) const { return buckets_[key.hash() % kBuckets]; }

  std::array<std::atomic<Node*>, kBuckets> buckets_{};
};

}  // namespace hone
