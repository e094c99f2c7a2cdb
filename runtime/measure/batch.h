// Batch: calls of one candidate that are timed together, in the launch context of their problem.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <hone/device.h>
#include <hone/error.h>
#include <hone/problem.h>

#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"

namespace hone {

/// Where candidates are measured. All references must outlive whatever is measured there; the workspaces serve every
/// candidate. Not thread-safe.
struct Bench {
  Device& device;
  const Problem& problem;
  Workload& workload;
  const Workspaces& workspaces;
  Stream stream;
  std::function<void(const Candidate&)> on_run = {};  ///< TuningOptions::on_run

  /// The time that the host needs to enqueue a launch in a stream when nothing disturbs it: calls count as at least
  /// that. 0 where they are so long that it never matters, and in graphs; see host_pace_us().
  double enqueue_us = 0;

  /// Throws device_lost when nothing can be run after `failure` any more: a corrupt context fails every call, so what
  /// follows would be blamed on the wrong candidate. Clears the workspaces: the failed one may have left its tickets.
  void require_alive(const Candidate& candidate, const Error& failure) const;
};

/// A number of back-to-back calls on inputs in the state that the workload says, in one of the bench's workspaces,
/// between two device events. A stream problem enqueues them each time; a graph problem captures them once for each
/// workspace, when first timed in it, and replays them. The device begins when the host has enqueued all of them
/// (Device::hold()): a stream takes as long as the slower of host and device, and the host's part is the same for all
/// candidates of as many launches.
class Batch {
 public:
  /// Both references must outlive the batch.
  Batch(const Bench& bench, const LoadedCandidate& loaded, int calls);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  int calls() const { return calls_; }

  /// Microseconds per call, this time, in the workspace of that turn. Waits. Throws what launching throws.
  double time_us(std::size_t turn = 0);

 private:
  double time_us(const std::function<void()>& run);
  void enqueue(void* workspace) const;

  const Bench& bench_;
  const LoadedCandidate& loaded_;
  int calls_;
  int launches_;  ///< in one call
  std::vector<std::unique_ptr<CapturedWork>> graphs_;  ///< by workspace; one where the candidate needs none
};

}  // namespace hone
