#include "runtime/dispatch/append_only_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <hone/tuned_reduce.h>

#include "runtime/dispatch/problem_key.h"

namespace hone {
namespace {

struct Key {
  int number = 0;
  bool operator==(const Key&) const = default;
  std::uint64_t bits() const { return static_cast<std::uint64_t>(number); }
};

struct CollidingKey {
  int number = 0;
  bool operator==(const CollidingKey&) const = default;
  std::uint64_t bits() const { return 42; }
};

/// A problem class that counts what it is compared with.
struct CountedKey {
  ProblemKey key;
  static inline int comparisons = 0;
  bool operator==(const CountedKey& other) const {
    ++comparisons;
    return key == other.key;
  }
  std::uint64_t bits() const { return key.bits(); }
};

TEST(AppendOnlyMap, AnEmptyMapFindsNothing) { EXPECT_EQ((AppendOnlyMap<Key, int>().find({1})), nullptr); }

TEST(AppendOnlyMap, FindsWhatWasInserted) {
  AppendOnlyMap<Key, std::string> map;
  map.insert({1}, "one");
  map.insert({2}, "two");
  EXPECT_EQ(*map.find({1}), "one");
  EXPECT_EQ(*map.find({2}), "two");
  EXPECT_EQ(map.find({3}), nullptr);
}

TEST(AppendOnlyMap, KeysOfTheSameBitsAreToldApart) {
  AppendOnlyMap<CollidingKey, int> map;
  for (int i = 0; i < 100; ++i) map.insert({i}, i * i);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*map.find({i}), i * i);
  EXPECT_EQ(map.find({100}), nullptr);
}

TEST(AppendOnlyMap, ANewValueHidesTheOldOneWhichStaysValid) {
  AppendOnlyMap<Key, std::string> map;
  const std::string& first = map.insert({1}, "a first value that is too long to be stored inline");
  const std::string& second = map.insert({1}, "second");
  EXPECT_EQ(map.find({1}), &second);
  EXPECT_EQ(first, "a first value that is too long to be stored inline");
}

TEST(AppendOnlyMap, ReferencesStayValidAsItGrows) {
  AppendOnlyMap<Key, int> map;
  std::vector<const int*> values;
  for (int i = 0; i < 10000; ++i) values.push_back(&map.insert({i}, i));
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(map.find({i}), values[static_cast<std::size_t>(i)]);
    ASSERT_EQ(*values[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(map.find({10000}), nullptr);
}

TEST(AppendOnlyMap, ANewValueHidesTheOldOneInEveryLaterTable) {
  AppendOnlyMap<Key, int> map;
  for (int value = 0; value < 2; ++value)
    for (int i = 0; i < 1000; ++i) map.insert({i}, value);
  for (int i = 1000; i < 5000; ++i) map.insert({i}, 1);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(*map.find({i}), 1);
}

TEST(AppendOnlyMap, TenThousandProblemClassesAreFoundAfterFewComparisons) {
  std::vector<CountedKey> keys;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::argmax, ReduceOp::mean})
    for (const DTypeInfo& dtype : kDTypes)
      for (const std::uint32_t alignment : {1u, 2u, 4u, 8u, 16u})
        for (int k = kSmallestSizeClass; k < kSmallestSizeClass + 40; ++k)
          keys.push_back({ProblemKey(reduce_problem(op, dtype.dtype, size_range(k).last, alignment))});
  ASSERT_GE(keys.size(), 10000u);
  AppendOnlyMap<CountedKey, int> map;
  for (const CountedKey& key : keys) map.insert(key, 0);
  int most = 0;
  std::size_t all = 0;
  for (const CountedKey& key : keys) {
    CountedKey::comparisons = 0;
    ASSERT_NE(map.find(key), nullptr);
    most = std::max(most, CountedKey::comparisons);
    all += static_cast<std::size_t>(CountedKey::comparisons);
  }
  EXPECT_LT(all, 2 * keys.size());
  EXPECT_LT(most, 32);
}

TEST(AppendOnlyMap, ReadersSeeWholeValuesWhileItGrows) {
  constexpr int kKeys = 4000;  // six tables
  AppendOnlyMap<Key, std::string> map;
  std::atomic<int> inserted = 0;
  std::vector<std::jthread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      while (inserted < kKeys) {
        const int known = inserted;
        for (int i = 0; i < known; i += 97) {
          const std::string* value = map.find({i});
          ASSERT_NE(value, nullptr);
          ASSERT_EQ(*value, "the value of key " + std::to_string(i));
        }
        const std::string* next = map.find({known});  // may be under insertion
        ASSERT_TRUE(!next || *next == "the value of key " + std::to_string(known));
      }
    });
  }
  for (int i = 0; i < kKeys; ++i) {
    map.insert({i}, "the value of key " + std::to_string(i));
    inserted = i + 1;
  }
}

}  // namespace
}  // namespace hone
