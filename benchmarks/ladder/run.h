// run_ladder() and run_matrix_ladder(): time every step of a ladder, and Hone, on one size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hone/session.h>

#include "benchmarks/common/ceilings.h"
#include "benchmarks/common/input_arena.h"
#include "benchmarks/common/race_track.h"
#include "benchmarks/ladder/matrix_steps.h"

namespace hone::benchmarks {

inline constexpr std::string_view kHone = "Hone";  ///< the last row of every ladder

/// A step on one size.
struct LadderRow {
  std::string step;        ///< LadderStep::name, MatrixStep::name, "copy" or "Hone"
  std::string size;        ///< "n = 4096" or "64 × 128"
  std::int64_t bytes = 0;  ///< that a call must move
  int launches = 0;        ///< a call's, zeroing included; 0 where it is not known
  int lines = 0;           ///< of its kernels; 0 where it is not known
  Timing timing = {};
  double ceiling_us = 0;  ///< the least that anyone took for these bytes, a plain read or copy included
  std::string fault = {};  ///< what is wrong with its result; "" if nothing is

  double percent_of_ceiling() const { return 100 * ceiling_us / timing.median_us; }
};

/// All steps, then Hone, timed side by side on the arena, which is full of f32. Sums must be right within 10^−5.
/// Throws Error.
std::vector<LadderRow> run_ladder(Session& session, const InputArena& arena, const RaceTrack& track,
                                  Ceilings& ceilings, std::int64_t n, LaunchContext context,
                                  const TimingOptions& options);

/// The same of another ladder, on rows × columns floats, with the device's own copy of as many bytes ahead of
/// the steps. Parts of every output must be right.
std::vector<LadderRow> run_matrix_ladder(MatrixLadder ladder, Session& session, const InputArena& arena,
                                         const RaceTrack& track, Ceilings& ceilings, std::int64_t rows,
                                         std::int64_t columns, LaunchContext context, const TimingOptions& options);

/// How far the sums of `n` copies of 1.23f are off, relative to the exact one: of each step that adds, and of Hone
/// last. Takes memory for them and for one step's copy.
struct LadderError {
  std::string step;
  double found = 0;
  double error = 0;
};
std::vector<LadderError> ladder_errors(Session& session, std::int64_t n);

/// Gives each row its timing and, as their ceiling, the least of those that are right and of the last one, which is
/// that of a plain read or copy.
void add_timings_to(std::vector<LadderRow>& rows, const std::vector<Timing>& timings);

/// One table: a row for each step with its lines of code, and for each size time, GB/s, % of the ceiling and the gain
/// over the step before.
std::string ladder_table(const std::vector<LadderRow>& rows);
std::string error_table(const std::vector<LadderError>& errors, std::int64_t n);

/// Returns a line for each step that says what it teaches.
std::string sum_legend();
std::string matrix_legend(MatrixLadder ladder);

}  // namespace hone::benchmarks
