#include <hone/sdk/transfer.h>

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

/// The resident blocks of a trial's kernel on another device: as many as the driver said, where the calculation gives the
/// same for both devices, else in its proportion.
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
                fmt::format("trials of {} ({}) say nothing about {} ({}): they are devices of different kinds", from.name,
                            from.kind, to.name, to.kind));
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
};

TransferStore::TransferStore(std::shared_ptr<Device> device, std::filesystem::path cache)
    : state_(std::make_unique<State>(std::move(device), std::move(cache))) {}

TransferStore::~TransferStore() = default;

bool TransferStore::store(const Problem& problem, const std::array<SizeRange, 3>& sizes, const Candidate& candidate,
                          const std::string& lender) {
  const Unit unit = unit_of(problem, candidate.policy);
  const auto binary = state_->memo.compile(*state_->device, std::span(&unit, 1)).front().binary;
  if (!binary) return false;
  const CompiledCode code = load_policy(*state_->device, problem, candidate.policy, unit, binary);
  if (code.compiled.resident_blocks == 0) return false;
  Winner winner = make_winner(problem,
                              {.candidate = candidate,
                               .resources = code.compiled.resources,
                               .resident_blocks = code.compiled.resident_blocks},
                              false);
  winner.tuned_extents = problem.extents;
  winner.sizes = sizes;
  winner.loan = Loan::transfer;
  winner.lender = fmt::format("{} on {}", to_string(problem), lender);
  state_->cache.publish(problem, winner, *binary, nullptr);
  if (!state_->failure.empty()) throw Error(ErrorCode::cache_failed, state_->failure);
  return true;
}

}  // namespace hone
