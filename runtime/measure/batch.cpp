#include "runtime/measure/batch.h"

#include <fmt/format.h>

#include <hone/kernel_family.h>

namespace hone {

void Bench::require_alive(const Candidate& candidate, const Error& failure) const {
  try {
    if (workspace) device.fill_bytes(workspace, 0, kWorkspaceHeaderBytes, stream);
    device.synchronize(stream);
  } catch (const Error& error) {
    throw Error(ErrorCode::device_lost,
                fmt::format("{} does not work any more after {} in at most {} blocks ({}): {}; only a new process can go on",
                            device.name(), problem.family->space().to_string(candidate.variant),
                            candidate.geometry.max_blocks, failure.what(), error.what()));
  }
}

Batch::Batch(const Bench& bench, const LoadedCandidate& loaded, int calls)
    : bench_(bench), loaded_(loaded), calls_(calls) {}

double Batch::time_us() {
  if (bench_.problem.launch_context == LaunchContext::stream)
    return bench_.device.time_us(bench_.stream, [&] { enqueue(); }) / calls_;

  if (!graph_) graph_ = bench_.device.capture(bench_.stream, [this] { enqueue(); });
  // Every replay reads the same copies of the inputs, and would find the last replay's in the cache.
  if (bench_.workload.must_displace_cache(calls_)) bench_.workload.displace_cache();
  return bench_.device.time_us(bench_.stream, [&] { bench_.device.replay(*graph_, bench_.stream); }) / calls_;
}

void Batch::enqueue() const {
  for (int call = 0; call < calls_; ++call)
    loaded_.enqueue(bench_.device, bench_.problem, bench_.workload.next(), bench_.workspace, bench_.stream);
}

}  // namespace hone
