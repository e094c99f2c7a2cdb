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

  /// Enqueues one call. Neither waits nor allocates. Throws what encoding and launching throw, and leaves the workspace
  /// as a call needs it: a kernel that was stopped midway on the host device may have left its ticket there. Throws
  /// NotResident only where nothing was enqueued, so that another candidate may serve the call.
  void enqueue(Device& device, const Problem& problem, std::span<void* const> buffers, void* workspace,
               Stream stream) const {
    LaunchList launches;
    problem.family->encode(problem, candidate, buffers, workspace, launches);
    bool is_first = true;
    try {
      for (const Launch& launch : launches) {
        device.launch(module->kernel(launch.entry), launch, stream);
        is_first = false;
      }
    } catch (const NotResident& refused) {
      if (workspace) clear_header(device, workspace, stream);
      if (is_first) throw;
      throw Error(refused.code(), refused.what());
    } catch (...) {
      if (workspace) clear_header(device, workspace, stream);
      throw;
    }
  }

 private:
  static void clear_header(Device& device, void* workspace, Stream stream) noexcept {
    try {
      device.fill_bytes(workspace, 0, kWorkspaceHeaderBytes, stream);
    } catch (...) {
      // The device is lost, or the capture has failed: nothing of it will run.
    }
  }
};

}  // namespace hone
