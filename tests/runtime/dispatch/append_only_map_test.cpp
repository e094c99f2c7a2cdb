#include "runtime/dispatch/append_only_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace hone {
namespace {

struct Key {
  int number = 0;
  bool operator==(const Key&) const = default;
  std::size_t hash() const { return static_cast<std::size_t>(number); }
};

struct CollidingKey {
  int number = 0;
  bool operator==(const CollidingKey&) const = default;
  std::size_t hash() const { return 42; }
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

TEST(AppendOnlyMap, KeysOfOneHashAreToldApart) {
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

TEST(AppendOnlyMap, HoldsMoreKeysThanBuckets) {
  AppendOnlyMap<Key, int> map;
  for (int i = 0; i < 10000; ++i) map.insert({i}, i);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(*map.find({i}), i);
}

TEST(AppendOnlyMap, ReadersSeeWholeValuesWhileOthersInsert) {
  constexpr int kKeys = 4000;
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
        map.find({known});  // may be under insertion
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
