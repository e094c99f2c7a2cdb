#include <hone/sdk/transfer.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/loans.h>
#include <hone/sdk/occupancy.h>
#include <hone/session.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/cache_bridge.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

/// Predictions this near are equal: then the faster one on the other device is taken, whose lead was measured.
constexpr double kTie = 0.005;

/// So many units for each core are compiled before what they are for is stored: few enough that little is lost when it
/// is interrupted, and enough that cores seldom wait for the last one.
constexpr std::size_t kUnitsPerCore = 8;

/// The resident blocks of a trial's kernel on another device: as many as the driver said, where the calculation gives
/// the same for both devices, else in its proportion.
int resident_there(const Problem& problem, const DeviceFacts& from, const Trial& trial, const DeviceFacts& to) {
  const WorkShape shape = problem.family->shape(problem, trial.candidate.policy);
  const auto calculated = [&](const DeviceFacts& facts) {
    return resident_blocks(facts, trial.resources, shape.block_threads, shape.dynamic_smem_bytes);
  };
  const int here = calculated(from), there = calculated(to);
  return here == there || here == 0 ? trial.resident_blocks : trial.resident_blocks * there / here;
}

}  // namespace

std::optional<TransferredChoice> predict_transfer(const Problem& problem, const DeviceFacts& from,
                                                  std::span<const Trial> trials, const DeviceFacts& to) {
  if (from.kind != to.kind)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("trials of {} ({}) say nothing about {} ({}): they are devices of different kinds",
                            from.name, from.kind, to.name, to.kind));
  std::optional<TransferredChoice> best;
  double best_measured_us = 0;
  for (const Trial& trial : trials) {
    if (trial.verdict != Verdict::ok || trial.median_us <= 0) continue;
    const Lender lender{.winner = {.candidate = trial.candidate}, .problem = problem, .device = from};
    const Candidate candidate = lent_candidate({to, problem, lender});
    if (!may_launch(to, problem, candidate)) continue;
    const int resident = resident_there(problem, from, trial, to);
    if (resident == 0) continue;
    const double modelled_us = predict(from, problem, trial.candidate, trial.resident_blocks).us();
    const double us = trial.median_us / modelled_us * predict(to, problem, candidate, resident).us();
    const bool is_tie = best && us <= best->predicted_us * (1 + kTie) && us >= best->predicted_us * (1 - kTie);
    if (best && (is_tie ? trial.median_us >= best_measured_us : us >= best->predicted_us)) continue;
    best = {.candidate = candidate, .predicted_us = us};
    best_measured_us = trial.median_us;
  }
  return best;
}

struct TransferStore::State {
  std::shared_ptr<Device> device;
  std::string failure;
  CacheBridge cache;
  BinaryMemo memo;

  State(std::shared_ptr<Device> for_device, std::filesystem::path path)
      : device(std::move(for_device)),
        cache(*device, {.cache_path = std::move(path)},
              [this](const cache::LayerFailure& reported) { failure = reported.message; }) {}

  /// True if the file serves the sizes with this very winner.
  bool has(const TransferredWinner& transferred) {
    Problem problem = transferred.problem;
    for (std::size_t i = 0; i < problem.extents.size(); ++i) problem.extents[i] = transferred.sizes[i].first;
    const std::optional<CachedWinner> found = cache.find(problem);
    return found && found->winner.loan == Loan::transfer && found->winner.candidate == transferred.candidate &&
           found->winner.sizes == transferred.sizes;
  }

  /// The winner with the resources of its code; nullopt where that is not resident.
  std::optional<Winner> loaded(const TransferredWinner& transferred, const Unit& unit,
                               const std::shared_ptr<const Binary>& binary) {
    const Problem& problem = transferred.problem;
    const CompiledCode code = load_policy(*device, problem, transferred.candidate.policy, unit, binary, &memo);
    if (code.compiled.resident_blocks == 0) return std::nullopt;
    Winner winner = make_winner(problem,
                                {.candidate = transferred.candidate,
                                 .resources = code.compiled.resources,
                                 .resident_blocks = code.compiled.resident_blocks},
                                false);
    winner.tuned_extents = problem.extents;
    winner.sizes = transferred.sizes;
    winner.loan = Loan::transfer;
    winner.lender = fmt::format("{} on {}", to_string(problem), transferred.lender);
    return winner;
  }
};

TransferStore::TransferStore(std::shared_ptr<Device> device, std::filesystem::path cache)
    : state_(std::make_unique<State>(std::move(device), std::move(cache))) {}

TransferStore::~TransferStore() = default;

void TransferStore::store(std::span<const TransferredWinner> winners, const Progress& on_done) {
  const std::size_t at_once = kUnitsPerCore * std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t begin = 0; begin < winners.size(); begin += at_once) {
    const auto some = winners.subspan(begin, std::min(at_once, winners.size() - begin));
    std::vector<TransferOutcome> outcomes;
    store_some(some, outcomes);
    for (std::size_t i = 0; i < some.size(); ++i) on_done(begin + i, outcomes[i]);
  }
}

/// Appends the outcome of each.
void TransferStore::store_some(std::span<const TransferredWinner> winners, std::vector<TransferOutcome>& outcomes) {
  std::vector<Unit> units;
  for (const TransferredWinner& each : winners) {
    const bool is_kept = state_->has(each);
    outcomes.push_back(is_kept ? TransferOutcome::kept : TransferOutcome::unusable);
    if (!is_kept) units.push_back(unit_of(each.problem, each.candidate.policy));
  }
  const std::vector<CompileOutcome> compiled = state_->memo.compile(*state_->device, units);
  std::vector<cache::Publication> publications;
  std::size_t next = 0;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    if (outcomes[i] == TransferOutcome::kept) continue;
    const Unit& unit = units[next];
    const std::shared_ptr<const Binary> binary = compiled[next++].binary;
    const std::optional<Winner> winner = binary ? state_->loaded(winners[i], unit, binary) : std::nullopt;
    if (!winner) continue;
    publications.push_back(state_->cache.publication(winners[i].problem, *winner, *binary, nullptr));
    outcomes[i] = TransferOutcome::stored;
  }
  if (publications.empty()) return;
  state_->cache.publish(publications);
  if (!state_->failure.empty()) throw Error(ErrorCode::cache_failed, state_->failure);
}

}  // namespace hone
