#include "runtime/jit/compile_pool.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include <hone/error.h>

namespace hone {
namespace {

/// One call of compile_all(): what its threads share.
class Batch {
 public:
  Batch(std::size_t count, const CompileOne& compile, std::stop_token stop,
        std::optional<std::chrono::steady_clock::time_point> deadline)
      : compile_(compile), stop_(std::move(stop)), deadline_(deadline), outcomes_(count) {}

  /// Each worker thread runs this.
  void work() {
    std::unique_lock lock(mutex_);
    while (may_start()) {
      const std::size_t unit = next_++;
      ++running_;
      lock.unlock();
      compile(unit);
      lock.lock();
      --running_;
      ++done_;
      changed_.notify_one();
    }
    ended_ = true;
    changed_.notify_one();
  }

  /// Reports progress until no unit is running and none will be started.
  void watch(const CompileProgress& on_progress) {
    int reported = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return done_ > reported || (ended_ && running_ == 0); });
      if (done_ == reported) return;
      reported = done_;
      if (!on_progress) continue;
      lock.unlock();
      on_progress(reported, static_cast<int>(outcomes_.size()));
      lock.lock();
    }
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }

  /// After all workers have ended.
  std::vector<CompileOutcome> take() {
    if (fatal_) std::rethrow_exception(fatal_);
    return std::move(outcomes_);
  }

 private:
  bool may_start() const {
    return next_ < outcomes_.size() && !abandoned_ && !fatal_ && !stop_.stop_requested() &&
           (!deadline_ || std::chrono::steady_clock::now() < *deadline_);
  }

  void compile(std::size_t unit) {
    CompileOutcome& outcome = outcomes_[unit];
    try {
      outcome.binary = compile_(unit);
    } catch (const Error& error) {
      outcome.error = error.what();
      if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::io_failed) return;
      const std::lock_guard lock(mutex_);
      if (!fatal_) fatal_ = std::current_exception();
    } catch (const std::exception& error) {
      outcome.error = error.what();
    }
  }

  const CompileOne& compile_;
  const std::stop_token stop_;
  const std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::vector<CompileOutcome> outcomes_;  // each is written by the one thread that compiles its unit

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::size_t next_ = 0;
  int running_ = 0;
  int done_ = 0;
  bool ended_ = false;  // a worker found nothing more to start
  bool abandoned_ = false;
  std::exception_ptr fatal_;  // would be the outcome of every unit
};

}  // namespace

std::vector<CompileOutcome> compile_all(std::size_t count, const CompileOne& compile, std::stop_token stop,
                                        const CompileProgress& on_progress,
                                        std::optional<std::chrono::steady_clock::time_point> deadline,
                                        std::size_t most_at_once) {
  if (count == 0) return {};
  Batch batch(count, compile, std::move(stop), deadline);
  {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t threads = std::min({count, cores, most_at_once});
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    try {
      for (std::size_t i = 0; i < threads; ++i) workers.emplace_back([&batch] { batch.work(); });
      batch.watch(on_progress);
    } catch (...) {
      batch.abandon();
      throw;
    }
  }
  return batch.take();
}

}  // namespace hone
