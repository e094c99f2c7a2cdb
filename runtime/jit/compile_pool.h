// compile_all(): compiles many units on all cores.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// Says what became of one unit: a binary, or why there is none, or neither when it was not started in time.
struct CompileOutcome {
  std::shared_ptr<const Binary> binary;
  std::string error;

  bool started() const { return binary != nullptr || !error.empty(); }
};

/// Called from the thread that called compile_all(), as units finish: `done` of `total`, growing.
using CompileProgress = std::function<void(int done, int total)>;

/// Compiles a unit, given by its index; called from several threads at once. What it throws is the unit's outcome.
using CompileOne = std::function<std::shared_ptr<const Binary>(std::size_t unit)>;

/// Compiles `count` units, one per hardware thread at a time and no more than `most_at_once` (at least 1), started in
/// their order. outcomes[i] belongs to unit i. Once `stop` is requested or `deadline` is over no further unit is
/// started; those under way are finished.
///
/// A unit that fails is an outcome. A compiler that is missing or does not serve the device fails them all, and so does
/// a folder without room for its files: Error(unsupported) or Error(io_failed) is thrown. What on_progress throws is
/// passed on too, once the units under way are finished.
std::vector<CompileOutcome> compile_all(std::size_t count, const CompileOne& compile, std::stop_token stop = {},
                                        const CompileProgress& on_progress = {},
                                        std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt,
                                        std::size_t most_at_once = std::numeric_limits<std::size_t>::max());

}  // namespace hone
