// Many processes with one empty cache and the same calls: whether one of them tunes each problem, and what it costs the
// others. `herd 32 5 500 4`: 32 processes, 5 problems, a budget of 500 ms, 4 of the processes killed. The cache is
// maintained without a pause meanwhile. Fails where a problem is tuned twice, a call waits twice or takes ten times as
// long as two budgets and one tuning, or the cache cannot be used.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <hone/hone.h>

#include "cache/maintenance/prune.h"
#include "cache/maintenance/verify.h"
#include "cache/store.h"
#include "tests/runtime/support/temp_folder.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Setting {
  int processes = 0;
  int problems = 0;
  milliseconds budget{};
  int kills = 0;
};

/// A process's report of one call, in one write to a pipe.
struct Report {
  int problem = 0;
  double ms = 0;
  bool has_tuned = false;
  int waits = 0;
  int compiles = 0;
  int cache_failures = 0;
  char failure[200] = "";
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void call_all(const Setting& setting, const std::filesystem::path& cache, int pipe) {
  hone::Session session(hone::Device::open("host"),
                        {.on_miss = hone::MissPolicy::tune, .tune_budget = setting.budget, .cache_path = cache});
  hone::SessionCounters before;
  for (int i = 0; i < setting.problems; ++i) {
    const auto start = Clock::now();
    session.prepare(hone::reduce_problem({.op = hone::ReduceOp::sum, .dtype = hone::DType::f32}, 1000 << (2 * i)));
    const hone::SessionCounters after = session.counters();
    Report report{.problem = i,
                  .ms = ms_since(start),
                  .has_tuned = after.tunings > before.tunings,
                  .waits = static_cast<int>(after.waits - before.waits),
                  .compiles = static_cast<int>(after.compiles - before.compiles),
                  .cache_failures = static_cast<int>(after.cache_failures - before.cache_failures)};
    std::snprintf(report.failure, sizeof report.failure, "%s", after.last_cache_failure.c_str());
    if (::write(pipe, &report, sizeof report) != sizeof report) ::_exit(1);
    before = after;
  }
}

::pid_t start(const std::function<void()>& work) {
  const ::pid_t child = ::fork();
  if (child != 0) return child;
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "herd: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

void maintain(const std::filesystem::path& cache) {
  for (;; std::this_thread::sleep_for(milliseconds(20))) {
    try {
      hone::cache::prune(cache, {});
      hone::cache::verify(cache);
    } catch (const hone::cache::StoreError&) {
      // Others have it locked: next time.
    }
  }
}

std::vector<Report> read_all(int pipe) {
  std::vector<Report> reports;
  for (Report report; ::read(pipe, &report, sizeof report) == sizeof report;) reports.push_back(report);
  return reports;
}

std::vector<Report> run(const Setting& setting, const std::filesystem::path& cache) {
  int pipe[2];
  if (::pipe(pipe) != 0) std::abort();
  const ::pid_t maintainer = start([&] {
    ::close(pipe[1]);
    maintain(cache);
  });
  std::vector<::pid_t> children;
  for (int i = 0; i < setting.processes; ++i)
    children.push_back(start([&] { call_all(setting, cache, pipe[1]); }));
  ::close(pipe[1]);
  std::jthread killer([&] {
    std::mt19937 random(1);
    for (int i = 0; i < setting.kills; ++i) {
      std::this_thread::sleep_for(milliseconds(300 + random() % 700));
      ::kill(children[static_cast<std::size_t>(i)], SIGKILL);
    }
  });
  std::vector<Report> reports = read_all(pipe[0]);
  killer.join();
  for (const ::pid_t child : children) ::waitpid(child, nullptr, 0);
  ::kill(maintainer, SIGKILL);
  ::waitpid(maintainer, nullptr, 0);
  return reports;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fputs("usage: herd PROCESSES PROBLEMS BUDGET_MS [KILLS]\n", stderr), 2;
  const Setting setting{.processes = std::atoi(argv[1]),
                        .problems = std::atoi(argv[2]),
                        .budget = milliseconds(std::atoi(argv[3])),
                        .kills = argc > 4 ? std::atoi(argv[4]) : 0};
  const hone::TempFolder folder;
  const std::filesystem::path cache = folder / "cache.sqlite";
  const auto begin = Clock::now();
  const std::vector<Report> reports = run(setting, cache);

  int tunings = 0, failures = 0, compiles = 0, most_waits = 0;
  double longest_call = 0, longest_tuning = 0;
  std::multiset<int> tuned;
  const char* failure = "";
  for (const Report& report : reports) {
    if (report.has_tuned) tuned.insert(report.problem);
    tunings += report.has_tuned;
    compiles += report.compiles;
    failures += report.cache_failures;
    if (report.cache_failures > 0) failure = report.failure;
    longest_call = std::max(longest_call, report.ms);
    most_waits = std::max(most_waits, report.waits);
    if (report.has_tuned && report.waits == 0) longest_tuning = std::max(longest_tuning, report.ms);
  }
  // A call compiles as well, and other programs may keep the machine busy; waiting for a claim to end takes longer.
  const double allowed = 10 * (2 * static_cast<double>(setting.budget.count()) + longest_tuning);
  std::printf("%zu calls of %d processes in %.1f s: %d tunings of %d problems, %d compilations, longest call %.0f ms, "
              "longest tuning %.0f ms, %zu winners stored, %d failures of the cache%s%s\n",
              reports.size(), setting.processes, ms_since(begin) / 1000, tunings, setting.problems, compiles,
              longest_call, longest_tuning, hone::cache::Store(cache).winners().size(), failures,
              *failure != '\0' ? ": " : "", failure);
  bool is_right = failures == 0 && most_waits <= 1 && longest_call <= allowed;
  for (int problem = 0; problem < setting.problems; ++problem)
    is_right = is_right && tuned.count(problem) <= 1 && (setting.kills > 0 || tuned.count(problem) == 1);
  const auto expected = static_cast<std::size_t>((setting.processes - setting.kills) * setting.problems);
  return is_right && reports.size() >= expected ? 0 : 1;
}
