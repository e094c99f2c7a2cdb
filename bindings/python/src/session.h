// Session and Problem: the library's handles as Python objects.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include <hone/c.h>
#include <nanobind/nanobind.h>

#include "src/array.h"
#include "src/gil.h"

namespace hone::python {

/// Keeps what the Python function that is the reference of a kernel raised, while this thread tunes.
struct RaisedInReference {
  std::string kernel;
  std::optional<nb::python_error> error;
};
RaisedInReference& raised_in_reference();

/// Raises the package's exception for `status`, with the library's message. Where a reference raised something, that is
/// its cause, or is raised itself if it is no Exception, such as KeyboardInterrupt.
void check(hone_status status);

/// Runs a call of the library without the GIL, and raises what it reports.
template <class Call>
void run(const Call& call) {
  hone_status status = HONE_OK;
  {
    const WithoutGil released;
    status = call();
  }
  if (status != HONE_OK) check(status);
}

/// A text of the library, which is freed.
std::string taken(char* text);

/// A call without its pointers.
class Problem {
 public:
  explicit Problem(hone_problem* problem) : problem_(problem) {}
  Problem(Problem&& other) noexcept : problem_(other.problem_) { other.problem_ = nullptr; }
  Problem& operator=(Problem&&) = delete;
  ~Problem() { hone_problem_destroy(problem_); }

  hone_problem* get() const { return problem_; }
  std::string text() const;
  void set_graph(bool is_graph);

 private:
  hone_problem* problem_;
};

/// The runtime of one device. A child that was forked leaves the session of its parent alone: its threads are missing.
class Session {
 public:
  struct Options {
    std::optional<std::int32_t> on_miss;
    std::optional<std::int64_t> tune_budget_ms;
    std::optional<std::string> cache;
    std::optional<std::int32_t> capture_workspaces;
    bool cache_read_only = false;
    bool validate = false;
    std::optional<std::int32_t> objective;
  };
  Session(const std::string& device, const Options& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  hone_session* get() const { return session_; }
  int device() const { return index_; }
  std::string device_name() const { return hone_device_name(device_); }
  std::string facts() const;
  std::string counters() const;
  void pin() {
    run([&] { return hone_session_pin(session_); });
  }

  /// Waits until all work in the stream is done.
  void synchronize(std::uintptr_t stream);

  /// True if later calls hit, by a kernel that was measured.
  bool prepare(const Problem& problem);

  /// The tuning that the cache has for the problem, as JSON; "null" if there is none.
  std::string stored_tuning(const Problem& problem) const;

  /// The tuning as JSON. `progress` is None, or called with (phase, done, total, best_us); what it raises ends the
  /// tuning and is raised.
  std::string tune(const Problem& problem, std::int64_t budget_ms, nb::object progress);

 private:
  hone_device* device_ = nullptr;
  hone_session* session_ = nullptr;
  int index_ = kHost;
  pid_t process_;
};

/// The session to call: `given`, or the default of the device, made at the first use. Raises ValueError if `array` is
/// on another device, and TypeError if `given` is no session.
Session& session_for(nb::handle given, const Array& array, const char* name);

/// Forgets the default sessions, without destroying them: a forked child makes its own.
void forget_default_sessions();

}  // namespace hone::python
