#include "tuner/campaign/lane.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <utility>

#include "tuner/campaign/problem_text.h"
#include "tuner/quantities.h"
#include "tuner/report.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

/// Opening a device and looking winners up may take its driver longer than any candidate.
constexpr milliseconds kOpeningPatience{120000};

/// A policy that died with this many geometries is not run with the others.
constexpr int kDeathsOfAPolicy = 2;

/// A problem that has cost this many workers is given up.
constexpr std::size_t kMostDeaths = 8;
constexpr int kMostUnexplainedDeaths = 2;

}  // namespace

Lane::Lane(std::string device, Json open, const CampaignOptions& options)
    : device_(std::move(device)), open_(std::move(open)), options_(options) {
  start();
}

void Lane::start() {
  is_ready_ = false;
  last_words_.clear();
  runs_at_start_ = runs_seen_ = 0;
  last_sign_ = Clock::now();
  worker_.emplace(options_.worker);
  worker_->send({{"open", open_}});
}

void Lane::give(Job job) {
  job_ = std::move(job);
  send_job();
}

void Lane::send_job() {
  is_done_ = false;
  last_sign_ = Clock::now();
  runs_at_start_ = runs_seen_ = worker_->running().count;
  Json order = job_->order;
  if (job_->kind != Job::Kind::look_up) {
    order["excluded"] = Json::array();
    for (const ExcludedCandidate& out : job_->excluded)
      order["excluded"].push_back({{"candidate", to_json(out.candidate, job_->problem)}, {"reason", out.reason}});
  }
  constexpr std::array<const char*, 3> kOrders{"look_up", "tune", "share"};
  worker_->send({{kOrders[static_cast<std::size_t>(job_->kind)], std::move(order)}});
  if (is_stopping_) stop();
}

void Lane::stop() {
  is_stopping_ = true;
  if (worker_ && job_) worker_->send({{"stop", true}});
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
  for (const Json& answer : worker_->receive()) {
    last_sign_ = Clock::now();
    take(answer, events);
  }
  if (is_gone()) return events;
  if (worker_->has_ended()) {
    const std::string how = "its process " + worker_->how_it_ended();
    handle_death(last_words_.empty() ? how : last_words_, events);
  } else if (hangs()) {
    worker_->kill_now();
    handle_death(fmt::format("its process hung: no sign of life for {}", format_duration(options_.patience)), events);
  }
  return events;
}

void Lane::take(const Json& answer, std::vector<LaneEvent>& events) {
  const std::string& kind = answer.begin().key();
  const Json& body = answer.begin().value();
  if (kind == "ready") {
    is_ready_ = true;
    if (!was_ready_) events.push_back({LaneEvent::Kind::ready, body, {}});
    was_ready_ = true;
    if (job_) send_job();
  } else if (kind == "progress") {
    events.push_back({LaneEvent::Kind::progress, body, {}});
  } else if (kind == "looked_up" || kind == "tuned" || kind == "shared") {
    is_done_ = true;
    events.push_back({LaneEvent::Kind::done, body, {}});
  } else if (kind == "failed") {
    last_words_ = body.value("message", "");
    const std::string code = body.value("code", "");
    if (code == "cache") events.push_back({LaneEvent::Kind::cache_failed, {}, last_words_});
    if (code == "cache" || code == "absent") worker_.reset();
    if (code == "absent") events.push_back({LaneEvent::Kind::lost, {}, last_words_});
  }
}

bool Lane::hangs() {
  const std::uint64_t runs = worker_->running().count;
  if (runs != runs_seen_) last_sign_ = Clock::now();
  runs_seen_ = runs;
  const bool is_opening = !is_ready_ || (job_ && job_->kind == Job::Kind::look_up);
  if (!is_opening && (!job_ || is_done_)) return false;
  return Clock::now() - last_sign_ > (is_opening ? std::max(kOpeningPatience, options_.patience) : options_.patience);
}

void Lane::handle_death(const std::string& how, std::vector<LaneEvent>& events) {
  const WorkerProcess::Running running = worker_->running();
  if (!is_ready_ || !job_ || job_->kind == Job::Kind::look_up) {
    worker_.reset();
    events.push_back({LaneEvent::Kind::lost, {}, fmt::format("{}: {}", device_, how)});
    return;
  }
  if (!is_done_) {
    if (running.count > runs_at_start_) {
      blame(running.candidate, how);
    } else {
      ++job_->unexplained_deaths;
    }
    if (job_->unexplained_deaths >= kMostUnexplainedDeaths || job_->died.size() >= kMostDeaths) {
      events.push_back({LaneEvent::Kind::job_failed, {},
                        job_->died.empty() ? how
                                           : fmt::format("{} candidates hung or killed their process, at last {}",
                                                         job_->died.size(), job_->died.back())});
      is_done_ = true;
    }
  }
  start();
}

void Lane::blame(const std::string& text, const std::string& how) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    ++job_->unexplained_deaths;
    return;
  }
  Candidate candidate = candidate_from_json(json, job_->problem);
  job_->died.push_back(fmt::format("{} in {}: {}", job_->problem.family->space().to_string(candidate.policy),
                                   blocks_text(candidate.geometry.max_blocks), how));
  const auto deaths = std::count_if(job_->excluded.begin(), job_->excluded.end(), [&](const ExcludedCandidate& out) {
    return out.candidate.policy == candidate.policy;
  });
  job_->excluded.push_back({candidate, how});
  if (deaths + 1 < kDeathsOfAPolicy) return;
  candidate.geometry.max_blocks = 0;
  job_->excluded.push_back({candidate, "not run, as it ended badly with other geometries: " + how});
}

}  // namespace hone::tuner
