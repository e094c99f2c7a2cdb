#include "runtime/dispatch/work_claim.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace hone {
namespace {

using std::chrono::milliseconds;

/// How often to renew a claim, well within its lease.
constexpr milliseconds kRenewal(10000);

/// How often to look whether the owner of a claim is done: soon at first, for a quick one; then so rarely that dozens
/// of waiting processes do not disturb what it measures.
constexpr milliseconds kFirstPause(5);
constexpr milliseconds kLongestPause(200);

}  // namespace

void WorkClaim::renew_if_due() {
  if (Clock::now() - renewed_ < kRenewal) return;
  cache_.renew(work_, problem_);
  renewed_ = Clock::now();
}

bool wait_for_owner(CacheBridge& cache, Work work, const Problem& problem, Clock::time_point end) {
  auto pause = kFirstPause;
  do {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  } while (cache.is_claimed(work, problem));
  return true;
}

}  // namespace hone
