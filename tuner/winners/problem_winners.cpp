#include "tuner/winners/problem_winners.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/sdk/source_digest.h>
#include <hone/tune_arguments.h>

#include "cache/identity.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"
#include "tuner/winners/stored_facts.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {

using cache::StoredWinner;

std::vector<StoredWinner> winners_of(const std::vector<StoredWinner>& all, const Problem& problem,
                                     const std::string& device, Objective objective) {
  const auto rank_of = [&](const StoredWinner& stored) {
    return std::tuple(is_of_source(stored, problem), stored.winner.tuned, stored.id);
  };
  std::vector<StoredWinner> winners;
  for (const StoredWinner& stored : all) {
    if (!is_described(problem, stored.key.problem) || !matches_device(stored.key.device, device)) continue;
    if (stored.key.problem.objective != name(objective)) continue;
    const auto same = std::find_if(winners.begin(), winners.end(), [&](const StoredWinner& other) {
      return cache::same_device(other.key.device, stored.key.device);
    });
    if (same == winners.end()) {
      winners.push_back(stored);
    } else if (rank_of(stored) > rank_of(*same)) {
      *same = stored;
    }
  }
  return winners;
}

std::vector<StoredWinner> winners_on(const std::vector<StoredWinner>& all, const Problem& problem,
                                     const std::string& device, Objective objective,
                                     const std::filesystem::path& path) {
  std::vector<StoredWinner> winners = winners_of(all, problem, device, objective);
  if (!winners.empty()) return winners;
  winners = winners_of(all, problem, "", objective);
  if (winners.empty()) return winners;
  std::vector<std::string> devices;
  for (const StoredWinner& stored : winners) devices.push_back(device_text(stored.key.device));
  throw CommandError(ExitCode::not_tuned,
                     printable(fmt::format("no winner of {} in {} matches --device {}; it has those of: {}",
                                           problem_label(problem), path.string(), shell_quoted(device),
                                           fmt::join(devices, "; "))));
}

bool is_of_source(const StoredWinner& stored, const Problem& problem) {
  return stored.key.toolchain.family_digest == source_digest(problem, stored_facts(stored.key.device));
}

}  // namespace hone::tuner
