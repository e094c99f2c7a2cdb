#include "tuner/campaign/lane.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "tuner/campaign/problem_json.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"

namespace hone::tuner {
namespace {

using std::chrono::milliseconds;

/// Opening a device and looking winners up may take its driver longer than any candidate.
constexpr milliseconds kOpeningPatience{120000};

/// A policy that died with this many geometries is not run with the others.
constexpr int kDeathsOfAPolicy = 2;

/// A problem that has cost this many workers is given up.
constexpr std::size_t kMostDeaths = 8;
constexpr int kMostUnexplainedDeaths = 2;

/// By whose space the candidates of a job that runs some are read.
const Problem& problem_of(const Job& job) {
  if (const auto* tune = std::get_if<TuneRequest>(&job.request)) return tune->problem;
  return std::get<ConsolidateRequest>(job.request).problems.front();
}

std::vector<ExcludedCandidate>& excluded_of(Job& job) {
  if (auto* tune = std::get_if<TuneRequest>(&job.request)) return tune->excluded;
  return std::get<ConsolidateRequest>(job.request).excluded;
}

}  // namespace

Lane::Lane(OpenRequest open, const CampaignOptions& options) : open_(std::move(open)), options_(options) { start(); }

void Lane::start() {
  is_ready_ = false;
  last_words_.clear();
  runs_at_start_ = runs_seen_ = 0;
  last_sign_ = Clock::now();
  worker_.emplace(options_.worker);
  worker_->send(open_);
}

void Lane::give(Job job) {
  job_ = std::move(job);
  given_at_ = Clock::now();
  send_job();
}

void Lane::send_job() {
  is_done_ = false;
  last_sign_ = Clock::now();
  job_->lost_ms = std::chrono::duration<double, std::milli>(last_sign_ - given_at_).count();
  runs_at_start_ = runs_seen_ = worker_->running().count;
  std::visit([this](const auto& request) { worker_->send(request); }, job_->request);
  if (is_stopping_) stop();
}

void Lane::stop() {
  is_stopping_ = true;
  if (worker_ && job_) worker_->send(StopRequest{});
}

Job Lane::take_job() {
  Job job = std::move(*job_);
  job_.reset();
  is_done_ = false;
  return job;
}

std::vector<LaneEvent> Lane::look() {
  std::vector<LaneEvent> events;
  if (!worker_) return events;
  for (Answer& answer : worker_->receive()) {
    last_sign_ = Clock::now();
    take(std::move(answer), events);
    if (is_gone()) return events;
  }
  if (worker_->has_ended()) {
    const std::string how = "its process " + worker_->how_it_ended();
    handle_death(last_words_.empty() ? how : last_words_, events);
  } else if (hangs()) {
    worker_->kill_now();
    handle_death(fmt::format("its process hung: no sign of life for {}", format_duration(options_.patience)), events);
  }
  return events;
}

void Lane::take(Answer&& answer, std::vector<LaneEvent>& events) {
  if (auto* ready = std::get_if<ReadyAnswer>(&answer)) {
    is_ready_ = true;
    if (!was_ready_) events.push_back(std::move(*ready));
    was_ready_ = true;
    if (job_) send_job();
  } else if (auto* progress = std::get_if<ProgressAnswer>(&answer)) {
    events.push_back(*progress);
  } else if (auto* looked_up = std::get_if<LookedUpAnswer>(&answer)) {
    finish(std::move(*looked_up), events);
  } else if (auto* tuned = std::get_if<TunedAnswer>(&answer)) {
    finish(std::move(*tuned), events);
  } else if (auto* consolidated = std::get_if<ConsolidatedAnswer>(&answer)) {
    finish(std::move(*consolidated), events);
  } else if (const auto* failed = std::get_if<FailedAnswer>(&answer)) {
    last_words_ = failed->message;
    const WorkerFailure why = failed->failure;
    if (why == WorkerFailure::cache || why == WorkerFailure::files)
      events.push_back(FilesFailed{why == WorkerFailure::cache, last_words_});
    if (why == WorkerFailure::absent) events.push_back(DeviceGone{last_words_});
    if (why != WorkerFailure::other && why != WorkerFailure::device_lost) worker_.reset();
  }
}

void Lane::finish(LaneEvent&& answer, std::vector<LaneEvent>& events) {
  is_done_ = true;
  events.push_back(std::move(answer));
}

bool Lane::hangs() {
  const std::uint64_t runs = worker_->running().count;
  if (runs != runs_seen_) last_sign_ = Clock::now();
  runs_seen_ = runs;
  const bool is_opening = !is_ready_ || (job_ && job_->is<LookUpRequest>());
  if (!is_opening && (!job_ || is_done_)) return false;
  return Clock::now() - last_sign_ > (is_opening ? std::max(kOpeningPatience, options_.patience) : options_.patience);
}

void Lane::handle_death(const std::string& how, std::vector<LaneEvent>& events) {
  const WorkerProcess::Running running = worker_->running();
  if (!is_ready_ || !job_ || job_->is<LookUpRequest>()) {
    worker_.reset();
    events.push_back(DeviceGone{fmt::format("{}: {}", device(), how)});
    return;
  }
  if (!is_done_) {
    if (running.count > runs_at_start_) {
      blame(running.candidate, how);
    } else {
      ++job_->unexplained_deaths;
    }
    if (job_->unexplained_deaths >= kMostUnexplainedDeaths || job_->died.size() >= kMostDeaths) {
      events.push_back(JobFailed{job_->died.empty()
                                     ? how
                                     : fmt::format("{} candidates hung or killed their process, at last {}",
                                                   job_->died.size(), job_->died.back())});
      is_done_ = true;
    }
  }
  start();
}

void Lane::blame(const std::string& text, const std::string& how) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    ++job_->unexplained_deaths;
    return;
  }
  const Problem& problem = problem_of(*job_);
  std::vector<ExcludedCandidate>& excluded = excluded_of(*job_);
  Candidate candidate = candidate_from_json(json, problem);
  job_->died.push_back(fmt::format("{} in {}: {}", problem.family->space().to_string(candidate.policy),
                                   blocks_text(candidate.geometry.max_blocks), how));
  const auto deaths = std::count_if(excluded.begin(), excluded.end(), [&](const ExcludedCandidate& out) {
    return out.candidate.policy == candidate.policy;
  });
  excluded.push_back({candidate, how});
  if (deaths + 1 < kDeathsOfAPolicy) return;
  candidate.geometry.max_blocks = 0;
  excluded.push_back({candidate, "not run, as it ended badly with other geometries: " + how});
}

}  // namespace hone::tuner
