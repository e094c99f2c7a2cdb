#include "runtime/jit/binary_memo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hone/error.h>
#include <hone/sdk/forwarding_device.h>

#include "tests/support/names.h"

namespace hone {
namespace {

using std::chrono::steady_clock;
using testing::ElementsAre;
using test::Names;
using testing::SizeIs;

/// A device that compiles by calling a function; nothing else is asked of it.
class CompilingDevice final : public ForwardingDevice {
 public:
  explicit CompilingDevice(std::function<Binary(const Unit&)> compile)
      : ForwardingDevice(Device::open("host")), compile_(std::move(compile)) {}

  Binary compile(const Unit& unit) const override { return compile_(unit); }

 private:
  std::function<Binary(const Unit&)> compile_;
};

std::vector<Unit> units(int count) {
  std::vector<Unit> list(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) list[static_cast<std::size_t>(i)].name = std::to_string(i);
  return list;
}

Binary binary_of(const Unit& unit) { return {.format = "test", .architecture = unit.name, .code = {}}; }

/// compile_all() of these units.
std::vector<CompileOutcome> compile(const Device& device, const std::vector<Unit>& units, std::stop_token stop = {},
                                    const CompileProgress& on_progress = {},
                                    std::optional<steady_clock::time_point> deadline = std::nullopt,
                                    std::size_t most_at_once = 1000) {
  const auto compile_one = [&](std::size_t i) { return std::make_shared<const Binary>(device.compile(units[i])); };
  return compile_all(units.size(), compile_one, std::move(stop), on_progress, deadline, most_at_once);
}

TEST(CompilePool, OutcomesAreInTheOrderOfTheUnits) {
  const CompilingDevice device(binary_of);
  const std::vector<CompileOutcome> outcomes = compile(device, units(50));
  ASSERT_THAT(outcomes, SizeIs(50));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_NE(outcomes[i].binary, nullptr);
    EXPECT_EQ(outcomes[i].binary->architecture, std::to_string(i));
    EXPECT_EQ(outcomes[i].error, "");
  }
}

TEST(CompilePool, NoUnitsGiveNoOutcomes) {
  const CompilingDevice device(binary_of);
  EXPECT_THAT(compile(device, {}), SizeIs(0));
}

TEST(CompilePool, AFailingUnitIsARecord) {
  const CompilingDevice device([](const Unit& unit) {
    if (unit.name == "1") throw Error(ErrorCode::compile_failed, "line 7: no");
    if (unit.name == "2") throw std::runtime_error("out of luck");
    return binary_of(unit);
  });
  const std::vector<CompileOutcome> outcomes = compile(device, units(4));
  EXPECT_NE(outcomes[0].binary, nullptr);
  EXPECT_EQ(outcomes[1].binary, nullptr);
  EXPECT_EQ(outcomes[1].error, "line 7: no");
  EXPECT_EQ(outcomes[2].error, "out of luck");
  EXPECT_TRUE(outcomes[2].started());
  EXPECT_NE(outcomes[3].binary, nullptr);
}

TEST(CompilePool, WhatFailsEveryUnitIsThrown) {
  for (const ErrorCode code : {ErrorCode::unsupported, ErrorCode::io_failed}) {
    std::atomic<int> calls = 0;
    const CompilingDevice device([&](const Unit&) -> Binary {
      ++calls;
      throw Error(code, "no compiler, or no room");
    });
    try {
      compile(device, units(1000));
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), Names("no compiler"));
    }
    EXPECT_LT(calls, 1000);
  }
}

TEST(CompilePool, SeveralUnitsCompileAtOnce) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one hardware thread";
  std::mutex mutex;
  std::condition_variable met;
  int inside = 0;
  bool together = false;
  const CompilingDevice device([&](const Unit& unit) {
    std::unique_lock lock(mutex);
    if (++inside == 2) together = true;
    met.notify_all();
    met.wait_for(lock, std::chrono::seconds(20), [&] { return together; });
    --inside;
    return binary_of(unit);
  });
  compile(device, units(2));
  EXPECT_TRUE(together);
}

TEST(CompilePool, NoMoreThanAllowedCompileAtOnce) {
  std::atomic<int> running = 0;
  const CompilingDevice device([&](const Unit& unit) {
    EXPECT_EQ(++running, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --running;
    return binary_of(unit);
  });
  EXPECT_THAT(compile(device, units(8), {}, {}, std::nullopt, 1), SizeIs(8));
}

TEST(CompilePool, ProgressComesFromTheCallingThreadAndGrowsToTheTotal) {
  const CompilingDevice device(binary_of);
  std::vector<int> seen;
  compile(device, units(20), {}, [&, caller = std::this_thread::get_id()](int done, int total) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(total, 20);
    if (!seen.empty()) {
      EXPECT_GT(done, seen.back());
    }
    seen.push_back(done);
  });
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), 20);
}

TEST(CompilePool, AnExceptionFromProgressEndsTheBatchAndIsPassedOn) {
  std::atomic<int> calls = 0;
  const CompilingDevice device([&](const Unit& unit) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return binary_of(unit);
  });
  EXPECT_THROW(compile(device, units(2000), {}, [](int, int) { throw std::logic_error("enough"); }),
               std::logic_error);
  EXPECT_LT(calls, 2000);
}

TEST(CompilePool, StopStartsNoFurtherUnit) {
  std::stop_source stop;
  const CompilingDevice device([&](const Unit& unit) {
    if (unit.name == "3") stop.request_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return binary_of(unit);
  });
  const std::vector<CompileOutcome> outcomes = compile(device, units(2000), stop.get_token());
  ASSERT_THAT(outcomes, SizeIs(2000));
  EXPECT_TRUE(outcomes[3].started());
  EXPECT_FALSE(outcomes.back().started());
}

TEST(CompilePool, AStopBeforehandStartsNothing) {
  std::stop_source stop;
  stop.request_stop();
  const CompilingDevice device(binary_of);
  for (const CompileOutcome& outcome : compile(device, units(5), stop.get_token())) {
    EXPECT_FALSE(outcome.started());
  }
}

TEST(CompilePool, ADeadlineLeavesLaterUnitsUnstarted) {
  const CompilingDevice device([](const Unit& unit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return binary_of(unit);
  });
  const std::vector<CompileOutcome> outcomes =
      compile(device, units(5000), {}, {}, steady_clock::now() + std::chrono::milliseconds(200));
  EXPECT_TRUE(outcomes.front().started());
  EXPECT_FALSE(outcomes.back().started());
}

TEST(BinaryMemo, WhatOneThreadCompilesOthersWaitFor) {
  std::atomic<int> compiled = 0;
  const CompilingDevice device([&](const Unit& unit) {
    ++compiled;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return binary_of(unit);
  });
  std::vector<Unit> alike = units(8);  // by what is compiled: their names are not
  for (std::size_t i = 0; i < alike.size(); ++i) alike[i].source = std::to_string(i / 4);
  BinaryMemo memo;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (const CompileOutcome& outcome : memo.compile(device, alike)) EXPECT_NE(outcome.binary, nullptr);
    });
  threads.clear();
  EXPECT_EQ(compiled, 2);
  EXPECT_EQ(memo.compiled(), 2u);
}

TEST(BinaryMemo, WhatFailedForOneThreadIsTriedAgainByTheNext) {
  std::atomic<int> tries = 0;
  const CompilingDevice device([&](const Unit& unit) {
    if (++tries == 1) throw Error(ErrorCode::compile_failed, "out of memory, say");
    return binary_of(unit);
  });
  BinaryMemo memo;
  EXPECT_THAT(memo.compile(device, units(1)).front().error, Names("memory"));
  EXPECT_NE(memo.compile(device, units(1)).front().binary, nullptr);
}

/// Units that are alike in nothing that is compiled.
std::vector<Unit> different_units(int count) {
  std::vector<Unit> list = units(count);
  for (Unit& unit : list) unit.source = unit.name;
  return list;
}

TEST(BinaryMemo, WhatIsCompiledAheadIsWaitedForAndFound) {
  const CompilingDevice device([](const Unit& unit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return binary_of(unit);
  });
  BinaryMemo memo;
  const BinaryMemo::Ahead ahead = memo.compile_ahead(device, [] { return different_units(4); });
  while (memo.compiled() == 0) std::this_thread::yield();
  for (const CompileOutcome& outcome : memo.compile(device, different_units(4))) EXPECT_NE(outcome.binary, nullptr);
  EXPECT_EQ(memo.compiled(), 4u);
}

TEST(BinaryMemo, NobodyWaitsForWhatWasLetGoOfAndNothingMoreIsBegun) {
  std::promise<void> may_end;
  std::atomic<int> begun = 0;
  const CompilingDevice device([&, end = may_end.get_future().share()](const Unit& unit) {
    ++begun;
    end.wait();
    return binary_of(unit);
  });
  {
    BinaryMemo memo;
    BinaryMemo::Ahead ahead = memo.compile_ahead(device, [] { return different_units(500); });
    while (begun == 0) std::this_thread::yield();
    ahead = {};
    EXPECT_LT(begun, 500);
    may_end.set_value();
  }  // what is under way is waited for here
  EXPECT_LE(begun, static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(BinaryMemo, AheadWaitsForWhatIsNeededNow) {
  std::promise<void> may_end;
  std::atomic<bool> has_begun = false;
  std::mutex mutex;
  std::vector<std::string> compiled;
  const CompilingDevice device([&, end = may_end.get_future().share()](const Unit& unit) {
    has_begun = true;
    if (unit.source != "ahead") end.wait();
    const std::scoped_lock lock(mutex);
    compiled.push_back(unit.source);
    return binary_of(unit);
  });
  Unit unit;
  unit.source = "ahead";
  const std::vector<Unit> needed = different_units(static_cast<int>(std::thread::hardware_concurrency()));
  BinaryMemo memo;
  std::jthread now([&] { memo.compile(device, needed); });
  while (!has_begun) std::this_thread::yield();
  const BinaryMemo::Ahead ahead = memo.compile_ahead(device, [&] { return std::vector{unit}; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(memo.compiled(), needed.size());
  may_end.set_value();
  while (memo.compiled() <= needed.size()) std::this_thread::yield();
  memo.compile(device, std::vector{unit});
  EXPECT_THAT(compiled, SizeIs(needed.size() + 1));
}

TEST(BinaryMemo, WhatIsNeededNowLeavesTheOtherCoresToWhatIsCompiledAhead) {
  if (std::thread::hardware_concurrency() < 4) GTEST_SKIP() << "two cores are left to others";
  std::promise<void> may_end;
  const CompilingDevice device([end = may_end.get_future().share()](const Unit& unit) {
    if (unit.source == "now") end.wait();
    return binary_of(unit);
  });
  Unit unit;
  unit.source = "now";
  BinaryMemo memo;
  std::jthread now([&] { memo.compile(device, std::vector{unit}); });
  while (memo.compiled() == 0) std::this_thread::yield();
  const BinaryMemo::Ahead ahead = memo.compile_ahead(device, [] { return different_units(4); });
  while (memo.compiled() < 5) std::this_thread::yield();
  may_end.set_value();
}

}  // namespace
}  // namespace hone
