// PreparedCall: Hone's calls of one problem, tuned beforehand.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <hone/kernel_family.h>
#include <hone/session.h>

namespace hone::benchmarks {

/// In a graph the call is a Plan's, whose workspace the graph keeps. The session must outlive it.
class PreparedCall {
 public:
  /// Prepares the problem, which tunes it where the session does that on a miss.
  PreparedCall(Session& session, const Problem& problem) : session_(session), problem_(problem) {
    session.prepare(problem);
    if (problem.launch_context == LaunchContext::graph) plan_ = session.make_plan(problem);
  }

  void enqueue(std::span<void* const> buffers, Stream stream) {
    if (plan_) plan_->launch(problem_, buffers, stream);
    else session_.launch(problem_, buffers, stream);
  }

  const Problem& problem() const { return problem_; }
  const Winner& winner() const { return *session_.prepare(problem_).winner; }
  std::string policy() const { return problem_.family->space().to_string(winner().candidate.policy); }

 private:
  Session& session_;
  Problem problem_;
  std::optional<Plan> plan_;
};

}  // namespace hone::benchmarks
