#include "runtime/choose/verify_candidate.h"

#include <fmt/format.h>

#include <span>

#include <hone/error.h>
#include <hone/own_stream.h>

#include "runtime/choose/compiled.h"
#include "runtime/choose/reference.h"
#include "runtime/choose/result_checks.h"
#include "runtime/measure/workload.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

/// The workload frees its memory while nothing runs on the stream any more.
class SmallChecks {
 public:
  SmallChecks(const std::shared_ptr<Device>& device, const LoadedCandidate& loaded,
              std::shared_ptr<const Module> reference)
      : device_(device), loaded_(loaded), reference_(std::move(reference)) {}

  std::string run(const ResultCheck& asked) {
    const Problem small = small_problem(device_->facts(), asked.problem, loaded_.candidate.policy);
    Workload workload(device_, small, stream_.get(), InputState::warm);
    const auto call = [&](const Problem& called, std::span<void* const> buffers) {
      loaded_.enqueue(*device_, called, buffers, workspaces_.of_turn(0), stream_.get());
    };
    Workload::Run call_reference;
    if (reference_)
      call_reference = [&](const Problem& called, std::span<void* const> buffers) {
        enqueue_reference(*device_, *reference_, called, 0, buffers, stream_.get());
      };
    try {
      const std::string fault = workload.verify(small, loaded_.candidate, asked.kind, call, call_reference);
      device_->synchronize(stream_.get());
      return fault.empty() ? "" : fmt::format("{} on {} input: {}", to_string(small), asked.kind, fault);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      device_->synchronize(stream_.get());
      return error.what();
    }
  }

 private:
  const std::shared_ptr<Device>& device_;
  const LoadedCandidate& loaded_;
  const std::shared_ptr<const Module> reference_;
  OwnStream stream_{*device_};
  Workspaces workspaces_{device_, kWorkspaceBytes, stream_.get()};
};

}  // namespace

std::string verify_candidate(const std::shared_ptr<Device>& device, const Problem& problem,
                             const LoadedCandidate& loaded, BinaryMemo& memo) {
  const TraceRange traced([&] { return "verify " + to_string(problem); });
  try {
    std::shared_ptr<const Module> reference;
    if (problem.family->verifier().has_reference_kernel()) reference = load_reference(*device, problem, memo);
    SmallChecks checks(device, loaded, std::move(reference));
    for (const ResultCheck& check : result_checks(problem))
      if (std::string fault = checks.run(check); !fault.empty()) return fault;
    return "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return error.what();
  }
}

}  // namespace hone
