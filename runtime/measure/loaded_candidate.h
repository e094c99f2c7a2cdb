// LoadedCandidate: a candidate whose code is on the device, ready to enqueue.
#pragma once

#include <memory>
#include <span>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>

namespace hone {

struct LoadedCandidate {
  Candidate candidate;
  std::shared_ptr<const Module> module;

  /// Enqueues one call. Neither waits nor allocates.
  void enqueue(Device& device, const Problem& problem, std::span<void* const> buffers, void* workspace,
               Stream stream) const {
    LaunchList launches;
    problem.family->encode(problem, candidate, buffers, workspace, launches);
    for (const Launch& launch : launches) device.launch(module->kernel(launch.entry), launch, stream);
  }
};

}  // namespace hone
