// run_ladder(): times every step of the ladder, and Hone, on one size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hone/session.h>

#include "benchmarks/common/input_arena.h"
#include "benchmarks/common/interleaved.h"
#include "benchmarks/common/reader.h"

namespace hone::benchmarks {

/// A step on one size.
struct LadderRow {
  std::string step;  ///< LadderStep::name, or "Hone"
  std::int64_t n = 0;
  int launches = 0;  ///< a call's, zeroing included; 0 where it is not known
  Timing timing = {};
  long double found = 0;
  long double expected = 0;
  bool is_right = false;  ///< within 10^−5 of the sum
};

/// All steps, then Hone, timed side by side on the arena, which is full of f32. Throws Error.
std::vector<LadderRow> run_ladder(Session& session, const InputArena& arena, const CacheFlush& flush, std::int64_t n,
                                  LaunchContext context, const TimingOptions& options);

/// One table: a row for each step, and for each size time, GB/s, % of the ceiling and the gain over the step before.
std::string ladder_table(const std::vector<LadderRow>& rows, const ReadCeiling& ceiling);

}  // namespace hone::benchmarks
