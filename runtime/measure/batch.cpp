#include "runtime/measure/batch.h"

namespace hone {

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
