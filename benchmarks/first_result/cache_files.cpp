#include "benchmarks/first_result/cache_files.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/hone.h>

#include "benchmarks/first_result/sample.h"
#include "cache/maintenance/prune.h"
#include "cache/store.h"

namespace hone::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr std::array<int, 5> kAlignments{16, 8, 4, 2, 1};
constexpr int kOperations = 10;
constexpr std::size_t kPerTransaction = 5000;

/// The winner of kFirstResultElements with its code, as the file has it.
cache::Publication stored_publication(const fs::path& file) {
  const cache::Store store(file);
  for (const cache::StoredWinner& stored : store.winners()) {
    if (stored.winner.tuned_extents[0] != kFirstResultElements) continue;
    const cache::ProblemRecord& problem = stored.key.problem;
    cache::Query query{.device = stored.key.device,
                       .toolchain = stored.key.toolchain,
                       .family = problem.family,
                       .operation = problem.operation,
                       .dtype = problem.dtype,
                       .numerics = problem.numerics,
                       .launch_context = problem.launch_context,
                       .alignment = static_cast<int>(problem.alignment),
                       .extents = stored.winner.tuned_extents};
    if (const auto hit = store.find(query))
      return {.key = stored.key, .winner = hit->winner, .binary = hit->binary.value(), .tuning = {}};
  }
  throw Error(ErrorCode::cache_failed, fmt::format("{} has no tuned sum of {} floats", file.string(),
                                                   kFirstResultElements));
}

/// The `number`-th copy: another key or range of sizes. A hundred have a range in common, and all ranges lie below the
/// size that is called, where a lookup by the index has to pass them.
cache::Publication copy_of(cache::Publication publication, std::int64_t number) {
  cache::ProblemRecord& problem = publication.key.problem;
  problem.alignment = kAlignments[static_cast<std::size_t>(number) % kAlignments.size()];
  if (number / 5 % 2 == 1) problem.launch_context = "graph";
  if (const std::int64_t operation = number / 10 % kOperations; operation > 0)
    problem.operation += fmt::format("_{}", operation);
  constexpr std::int64_t kRanges = 1000, kWidth = kFirstResultElements / 2 / kRanges;
  const std::int64_t first = 1 + number / 100 % kRanges * kWidth;
  problem.sizes[0] = {first, first + kWidth - 1};
  publication.winner.tuned_extents[0] = first;
  return publication;
}

}  // namespace

void tune_few(const std::string& device, const fs::path& file) {
  Session session(Device::open(device), {.on_miss = MissPolicy::error, .cache_path = file});
  for (const std::int64_t n : {std::int64_t{1} << 10, std::int64_t{kFirstResultElements}, std::int64_t{1} << 22})
    if (!session.tune(reduce_problem(ReduceOp::sum, DType::f32, n), {.budget = std::chrono::seconds(2)}).winner)
      throw Error(ErrorCode::device_failed, fmt::format("no candidate for the sum of {} floats works", n));
}

void copy_with_many(const fs::path& few, std::int64_t winners, CodeOfCopies code, const fs::path& file) {
  fs::copy_file(few, file, fs::copy_options::overwrite_existing);
  const cache::Store store(file, 0);
  const cache::Publication publication = stored_publication(few);
  std::vector<cache::Publication> copies;
  for (std::int64_t number = 0; number < winners; ++number) {
    copies.push_back(copy_of(publication, number));
    if (code == CodeOfCopies::own)  // a loader does not read what follows the last section
      for (const char digit : std::to_string(number))
        copies.back().binary.code.push_back(static_cast<std::byte>(digit));
    if (copies.size() < kPerTransaction && number + 1 < winners) continue;
    store.publish(copies);
    copies.clear();
  }
}

void evict(const fs::path& file) {
  const cache::PruneCounts counts = cache::prune(file, {.max_bytes = cache::kLeastMaxBytes});
  if (counts.evicted.tunings == 0 || counts.evicted.binaries == 0)
    throw Error(ErrorCode::cache_failed, fmt::format("{} was too small for an eviction", file.string()));
  stored_publication(file);  // throws where the code that was used last is gone
}

}  // namespace hone::benchmarks
