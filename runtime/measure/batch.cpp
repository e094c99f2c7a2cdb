#include "runtime/measure/batch.h"

#include <algorithm>

#include <fmt/format.h>

#include <hone/kernel_family.h>

namespace hone {

void Bench::require_alive(const Candidate& candidate, const Error& failure) const {
  try {
    workspaces.clear(stream);
    device.synchronize(stream);
  } catch (const Error& error) {
    throw Error(
        ErrorCode::device_lost,
        fmt::format("{} does not work any more after {} in at most {} blocks ({}): {}; only a new process can go on",
                    device.name(), problem.family->space().to_string(candidate.policy), candidate.geometry.max_blocks,
                    failure.what(), error.what()));
  }
}

Batch::Batch(const Bench& bench, const LoadedCandidate& loaded, int calls)
    : bench_(bench),
      loaded_(loaded),
      calls_(calls),
      launches_(bench.problem.family->shape(bench.problem, loaded.candidate.policy).launches),
      graphs_(bench.problem.family->workspace_bytes(bench.problem, loaded.candidate) > 0 ? Workspaces::kCount : 1) {}

double Batch::time_us(std::size_t turn) {
  const auto run = [&] { enqueue(bench_.workspaces.of_turn(turn)); };
  if (bench_.problem.launch_context == LaunchContext::stream)
    return std::max(time_us(run), bench_.enqueue_us * launches_);

  std::unique_ptr<CapturedWork>& graph = graphs_[turn % graphs_.size()];
  if (!graph) graph = bench_.device.capture(bench_.stream, run);
  if (bench_.workload.must_displace_cache()) bench_.workload.displace_cache();
  return time_us([&] { bench_.device.replay(*graph, bench_.stream); });
}

/// The time of one of the calls that `run` enqueues. The device is held until all are enqueued: in a stream the host,
/// whatever else it does, would set the pace of short ones, and launching a graph takes longer the more kernels it has.
double Batch::time_us(const std::function<void()>& run) {
  std::unique_ptr<StreamHold> hold = bench_.device.hold(bench_.stream);
  const auto run_and_release = [&] {
    run();
    hold.reset();
  };
  return bench_.device.time_us(bench_.stream, run_and_release) / calls_;
}

void Batch::enqueue(void* workspace) const {
  for (int call = 0; call < calls_; ++call)
    loaded_.enqueue(bench_.device, bench_.problem, bench_.workload.next(), workspace, bench_.stream);
}

}  // namespace hone
