#include "runtime/dispatch/workspace_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include "tests/runtime/support/fake_device.h"

namespace hone {
namespace {

class WorkspacePoolTest : public testing::Test {
 protected:
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
};

TEST_F(WorkspacePoolTest, AStreamKeepsItsWorkspace) {
  WorkspacePool pool(device_, 0);
  void* const first = pool.take({.id = 1}).memory();
  EXPECT_EQ(pool.take({.id = 1}).memory(), first);
}

TEST_F(WorkspacePoolTest, StreamsHaveDistinctOnesThatDoNotOverlap) {
  WorkspacePool pool(device_, 2);
  std::set<std::byte*> starts;
  for (std::uint64_t id = 0; id < 50; ++id) starts.insert(static_cast<std::byte*>(pool.take({.id = id}).memory()));
  ASSERT_EQ(starts.size(), 50u);
  for (auto start = starts.begin(); std::next(start) != starts.end(); ++start)
    EXPECT_GE(*std::next(start) - *start, static_cast<std::ptrdiff_t>(kWorkspaceBytes));
  for (std::byte* start : starts)
    EXPECT_EQ(device_->memory_kind(start + kWorkspaceBytes - 1), MemoryKind::device);
}

TEST_F(WorkspacePoolTest, TheirHeadersHoldZeros) {
  WorkspacePool pool(device_, 1);
  for (const StreamState& stream : {StreamState{.id = 7}, StreamState{.id = 7, .capturing = true, .capture_id = 1}}) {
    const auto* memory = static_cast<const unsigned char*>(pool.take(stream).memory());
    EXPECT_TRUE(std::all_of(memory, memory + kWorkspaceHeaderBytes, [](unsigned char x) { return x == 0; }));
  }
}

TEST_F(WorkspacePoolTest, AGraphHasAnotherOneThanItsStream) {
  WorkspacePool pool(device_, 4);
  void* const of_stream = pool.take({.id = 1}).memory();
  void* const first = pool.take({.id = 1, .capturing = true, .capture_id = 1}).memory();
  void* const second = pool.take({.id = 1, .capturing = true, .capture_id = 2}).memory();
  void* const fork = pool.take({.id = 2, .capturing = true, .capture_id = 2}).memory();
  EXPECT_EQ((std::set<void*>{of_stream, first, second, fork}.size()), 4u);
  EXPECT_EQ(pool.take({.id = 1, .capturing = true, .capture_id = 1}).memory(), first);
}

TEST_F(WorkspacePoolTest, NothingIsAllocatedDuringCapture) {
  WorkspacePool pool(device_, 2);
  const int before = device_->allocations();
  pool.take({.id = 1, .capturing = true, .capture_id = 1});
  pool.take({.id = 1, .capturing = true, .capture_id = 2});
  EXPECT_EQ(device_->allocations(), before);
}

TEST_F(WorkspacePoolTest, AnExhaustedReserveSaysWhatToDo) {
  WorkspacePool pool(device_, 1);
  pool.take({.id = 1, .capturing = true, .capture_id = 1});
  try {
    pool.take({.id = 1, .capturing = true, .capture_id = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("SessionOptions::capture_workspaces"));
  }
  EXPECT_NE(pool.take({.id = 1, .capturing = true, .capture_id = 1}).memory(), nullptr);
  EXPECT_NE(pool.take({.id = 1}).memory(), nullptr);
}

TEST_F(WorkspacePoolTest, CallsThatAreEnqueuedAtOnceInOneStreamHaveOneEach) {
  WorkspacePool pool(device_, 0);
  void* first = nullptr;
  {
    const WorkspaceLease call = pool.take({.id = 1});
    const WorkspaceLease other = pool.take({.id = 1});
    const WorkspaceLease third = pool.take({.id = 1});
    EXPECT_EQ((std::set<void*>{call.memory(), other.memory(), third.memory()}.size()), 3u);
    first = call.memory();
  }
  EXPECT_EQ(pool.take({.id = 1}).memory(), first);
}

TEST_F(WorkspacePoolTest, AGraphWithoutASecondOneWaitsForTheFirst) {
  WorkspacePool pool(device_, 1);
  const StreamState capture{.id = 1, .capturing = true, .capture_id = 1};
  void* memory = nullptr;
  std::jthread other;
  {
    const WorkspaceLease call = pool.take(capture);
    other = std::jthread([&] { memory = pool.take(capture).memory(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(memory, nullptr);
  }
  other.join();
  EXPECT_NE(memory, nullptr);
}

TEST_F(WorkspacePoolTest, RecycledOnesServeOtherStreamsAndGraphsKeepTheirs) {
  WorkspacePool pool(device_, 1);
  const StreamState capture{.id = 1, .capturing = true, .capture_id = 1};
  void* const of_graph = pool.take(capture).memory();
  std::set<void*> before, after;
  for (std::uint64_t id = 0; id < 8; ++id) before.insert(pool.take({.id = id}).memory());
  const int allocations = device_->allocations();
  pool.recycle();
  for (std::uint64_t id = 100; id < 108; ++id) after.insert(pool.take({.id = id}).memory());
  EXPECT_EQ(after, before);
  EXPECT_EQ(device_->allocations(), allocations);
  EXPECT_EQ(pool.take(capture).memory(), of_graph);
}

TEST_F(WorkspacePoolTest, EverythingIsFreedWithThePool) {
  {
    WorkspacePool pool(device_, 3);
    for (std::uint64_t id = 0; id < 20; ++id) pool.take({.id = id});
  }
  EXPECT_EQ(device_->live_allocations(), 0u);
}

TEST_F(WorkspacePoolTest, NoTwoThreadsHoldTheSameOne) {
  constexpr std::uint64_t kStreams = 20;
  WorkspacePool pool(device_, 0);
  std::mutex mutex;
  std::set<void*> held, seen;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const WorkspaceLease lease = pool.take({.id = i % kStreams});
        {
          const std::scoped_lock lock(mutex);
          EXPECT_TRUE(held.insert(lease.memory()).second);
          seen.insert(lease.memory());
        }
        std::this_thread::yield();
        const std::scoped_lock lock(mutex);
        held.erase(lease.memory());
      }
    });
  threads.clear();
  EXPECT_LE(seen.size(), 4 * kStreams);  // as many for a stream as threads called in it at once
}

}  // namespace
}  // namespace hone
