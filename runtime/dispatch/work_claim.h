// WorkClaim: work on a problem that this process has taken and that others wait for.
#pragma once

#include <hone/problem.h>

#include "runtime/dispatch/cache_bridge.h"
#include "runtime/measure/race.h"

namespace hone {

/// Gives the work back, whatever ends it. All references must outlive the claim. Not thread-safe.
class WorkClaim {
 public:
  /// CacheBridge::claim() has taken the work.
  WorkClaim(CacheBridge& cache, Work work, const Problem& problem) : cache_(cache), work_(work), problem_(problem) {}
  ~WorkClaim() { cache_.release(work_, problem_); }
  WorkClaim(const WorkClaim&) = delete;
  WorkClaim& operator=(const WorkClaim&) = delete;

  /// Renews the claim when that is due. To be called between two steps of the work, so that no file is open while
  /// something is measured.
  void renew_if_due();

 private:
  CacheBridge& cache_;
  const Work work_;
  const Problem& problem_;
  Clock::time_point renewed_ = Clock::now();
};

/// Waits until nobody has claimed the work on `problem`; false when somebody still has at `end`.
bool wait_for_owner(CacheBridge& cache, Work work, const Problem& problem, Clock::time_point end);

}  // namespace hone
