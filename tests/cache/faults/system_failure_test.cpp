// Each call to the operating system and each allocation failing, once and for good, under everything a cache does.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/failing_allocator.h"
#include "tests/cache/faults/fault_vfs.h"
#include "tests/cache/faults/scenario.h"

namespace hone::cache {
namespace {

constexpr std::array kPersistences{Persistence::once, Persistence::for_good};

/// Fails calls to the operating system that `is_meant` selects, the one with this number (from 0) first.
class CallFailure {
 public:
  CallFailure(int number, Persistence persistence, std::function<int(const Operation&)> code_of)
      : number_(number), persistence_(persistence), code_of_(std::move(code_of)) {}

  void start() {
    vfs_.emplace([this](const Operation& operation) {
      const int code = code_of_(operation);
      if (code == SQLITE_OK) return SQLITE_OK;
      const int asked = asked_++;
      return asked == number_ || (asked > number_ && persistence_ == Persistence::for_good) ? code : SQLITE_OK;
    });
  }
  void stop() { vfs_.reset(); }
  int asked() const { return asked_; }

 private:
  int number_;
  Persistence persistence_;
  std::function<int(const Operation&)> code_of_;
  int asked_ = 0;
  std::optional<FaultVfs> vfs_;
};

constexpr int kNever = 1'000'000'000;

void fail_every_call(Campaign& campaign, const std::vector<Scenario>& of,
                     const std::function<int(const Operation&)>& code_of) {
  int turn = 0;
  for (const Scenario& scenario : of) {
    const Trial trial(scenario);
    std::string what;
    CallFailure none(kNever, Persistence::once, code_of);
    ASSERT_EQ(trial.run([&] { none.start(); }, [&] { none.stop(); }, what), Outcome::right) << what;
    for (const Persistence persistence : kPersistences) {
      const Points calls(none.asked(), stride_of(1), turn++);
      campaign.run(0, calls.count(), [&](int number) {
        const int call = calls[number];
        CallFailure failure(call, persistence, code_of);
        const Outcome outcome = trial.run([&] { failure.start(); }, [&] { failure.stop(); }, what);
        campaign.count(outcome, fmt::format("call {} {}: {}", call, static_cast<int>(persistence), what));
      });
    }
  }
}

void fail_every_allocation(Campaign& campaign, const std::vector<Scenario>& of, int stride_of_once) {
  int turn = 0;
  for (const Scenario& scenario : of) {
    const Trial trial(scenario);
    std::optional<AllocationFailure> failure;
    long asked = 0;
    std::string what;
    const auto stop = [&] { asked = failure->asked(), failure.reset(); };
    ASSERT_EQ(trial.run([&] { failure.emplace(kNever, Persistence::once); }, stop, what), Outcome::right) << what;
    const auto total = static_cast<int>(asked);
    const std::int64_t used = sqlite3_memory_used();
    for (const Persistence persistence : kPersistences) {
      // Where one has failed, the next ones hardly matter any more. All begin alike: each takes its turn there.
      const Points allocations(total, stride_of(persistence == Persistence::once ? stride_of_once : 4 * stride_of_once),
                               turn++);
      campaign.run(0, allocations.count(), [&](int number) {
        const int allocation = allocations[number];
        const Outcome outcome = trial.run([&] { failure.emplace(allocation, persistence); }, stop, what);
        campaign.count(outcome, fmt::format("allocation {} {}: {}", allocation, static_cast<int>(persistence), what));
        if (sqlite3_memory_used() != used) campaign.count(Outcome::wrong, "memory was not given back");
      });
    }
  }
}

int code_of_full_disk(const Operation& operation) {
  return operation.call == Call::write ? SQLITE_FULL : SQLITE_OK;
}

int code_of_broken_disk(const Operation& operation) { return io_error(operation.call); }

TEST(CacheSystemFailure, EveryFailingCallIsRefusedOrOvercome) {
  Campaign campaign("the N-th I/O call fails, once and for good");
  fail_every_call(campaign, scenarios(), code_of_broken_disk);
}

TEST(CacheSystemFailure, FullDiskAtEveryWriteIsRefused) {
  Campaign campaign("no space at the N-th write, once and for good");
  fail_every_call(campaign, scenarios(), code_of_full_disk);
}

TEST(CacheSystemFailure, EveryFailingAllocationIsRefusedOrOvercome) {
  Campaign campaign("the N-th allocation fails, once and for good");
  fail_every_allocation(campaign, scenarios(), 3);
}

TEST(CacheSystemFailure, MaintenanceOutlivesFailingCalls) {
  Campaign campaign("the N-th I/O call of merge, import, repair, prune or snapshot fails, once and for good");
  fail_every_call(campaign, maintenance_scenarios(), code_of_broken_disk);
  fail_every_call(campaign, maintenance_scenarios(), code_of_full_disk);
}

TEST(CacheSystemFailure, MaintenanceOutlivesFailingAllocations) {
  Campaign campaign("the N-th allocation of merge, import, repair, prune or snapshot fails, once and for good");
  fail_every_allocation(campaign, maintenance_scenarios(), 24);
}

}  // namespace
}  // namespace hone::cache
