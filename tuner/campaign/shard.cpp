#include "tuner/campaign/shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include <hone/kernel_family.h>

#include "tuner/problems/problem_text.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr double kGiB = 1 << 30;

/// More than any campaign has problems; each is a list in memory.
constexpr std::size_t kMostShards = 1'000'000;

/// Problems that one shard gets, as indices, and what they cost together.
struct Part {
  std::vector<std::size_t> members;
  double cost = 0;

  void add(std::size_t member, double more) {
    members.push_back(member);
    cost += more;
  }
};

std::optional<std::size_t> parse_count(std::string_view text) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return count;
}

/// The size sweeps, in the order of their first problems.
std::vector<Part> sweeps_of(std::span<const WeightedProblem> problems) {
  std::vector<Part> sweeps;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto same = std::find_if(sweeps.begin(), sweeps.end(), [&](const Part& sweep) {
      const WeightedProblem& first = problems[sweep.members.front()];
      return first.identity == problems[i].identity && same_sweep(first.problem, problems[i].problem);
    });
    (same != sweeps.end() ? *same : sweeps.emplace_back()).add(i, tuning_cost(problems[i].problem));
  }
  return sweeps;
}

/// Appends runs of neighbouring sizes, as many as the sweep has fair shares in it, which cost about the same.
void divide(std::span<const WeightedProblem> problems, Part sweep, double fair_share, std::vector<Part>& parts) {
  const auto runs = static_cast<std::size_t>(std::ceil(sweep.cost / fair_share));
  std::stable_sort(sweep.members.begin(), sweep.members.end(), [&](std::size_t a, std::size_t b) {
    return problems[a].problem.extents < problems[b].problem.extents;
  });
  double before = 0;
  std::size_t run = 0;
  parts.emplace_back();
  for (const std::size_t member : sweep.members) {
    const double cost = tuning_cost(problems[member].problem);
    // A problem belongs to the run in which its middle lies.
    const auto middle = static_cast<std::size_t>((before + cost / 2) / sweep.cost * static_cast<double>(runs));
    if (middle > run && !parts.back().members.empty()) parts.emplace_back();
    run = middle;
    parts.back().add(member, cost);
    before += cost;
  }
}

}  // namespace

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_count(text.substr(0, slash));
  const auto count = slash == text.npos ? std::nullopt : parse_count(text.substr(slash + 1));
  if (!index || !count)
    throw CommandError(ExitCode::usage, fmt::format("'{}' is no shard: give --shard I/N, such as 1/8 for the first of "
                                                    "eight", printable(text)));
  if (*index < 1 || *index > *count)
    throw CommandError(ExitCode::usage, fmt::format("there is no shard {} of {}: shards are numbered from 1 to their "
                                                    "count", *index, *count));
  if (*count > kMostShards)
    throw CommandError(ExitCode::usage, fmt::format("a campaign has at most {} shards, not {}", kMostShards, *count));
  return {*index, *count};
}

double tuning_cost(const Problem& problem) {
  return 1 + static_cast<double>(problem.family->bytes_moved(problem)) / kGiB;
}

std::vector<WeightedProblem> problems_of_shard(std::span<const WeightedProblem> problems, const Shard& shard) {
  const double total = std::accumulate(problems.begin(), problems.end(), 0.0, [](double sum, const auto& weighted) {
    return sum + tuning_cost(weighted.problem);
  });
  const double fair_share = total / static_cast<double>(shard.count);
  std::vector<Part> parts;
  for (Part& sweep : sweeps_of(problems)) {
    if (sweep.cost > fair_share && sweep.members.size() > 1) divide(problems, std::move(sweep), fair_share, parts);
    else parts.push_back(std::move(sweep));
  }
  // The most expensive part goes first, each to the shard that has the least (Graham, Bounds on Multiprocessing Timing
  // Anomalies, 1969: at most 4/3 of the best division).
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.cost > b.cost; });
  std::vector<Part> shards(shard.count);
  for (const Part& part : parts) {
    Part& least = *std::min_element(shards.begin(), shards.end(),
                                    [](const Part& a, const Part& b) { return a.cost < b.cost; });
    least.members.insert(least.members.end(), part.members.begin(), part.members.end());
    least.cost += part.cost;
  }
  std::vector<std::size_t>& mine = shards[shard.index - 1].members;
  std::sort(mine.begin(), mine.end());
  std::vector<WeightedProblem> chosen;
  for (const std::size_t member : mine) chosen.push_back(problems[member]);
  return chosen;
}

}  // namespace hone::tuner
