#include "src/session.h"

#include <unistd.h>

#include <string_view>
#include <vector>

#include <nanobind/stl/string.h>

namespace hone::python {
namespace {

/// By the number of the device, the host's first. Never freed: work may be pending when the interpreter ends.
std::vector<nb::object>& default_sessions() {
  static auto& sessions = *new std::vector<nb::object>();
  return sessions;
}

std::string name_of(int device) { return device == kHost ? "host" : "cuda:" + std::to_string(device); }

/// The state of the library's callback: the caller's function, and what it raised.
struct Progress {
  nb::object function;
  std::optional<nb::python_error> raised;
};

std::int32_t report(void* context, std::int32_t phase, std::int32_t done, std::int32_t total, double best_us) {
  auto& progress = *static_cast<Progress*>(context);
  const WithGil acquired;
  if (progress.raised) return 1;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.function.is_none()) progress.function(phase, done, total, best_us);
    return 0;
  } catch (nb::python_error& error) {
    progress.raised.emplace(error);
    return 1;
  }
}

}  // namespace

RaisedInReference& raised_in_reference() {
  static thread_local RaisedInReference raised;
  return raised;
}

void check(hone_status status) {
  if (status == HONE_OK) return;
  const nb::object kind = nb::cast<nb::dict>(hooks().errors)[nb::int_(status)];
  if (raised_in_reference().error) {
    nb::python_error error = *raised_in_reference().error;
    raised_in_reference().error.reset();
    if (!error.matches(PyExc_Exception)) throw nb::python_error(error);
    nb::raise_from(error, kind, "the reference of the kernel '%s' raised %s; nothing is stored",
                   raised_in_reference().kernel.c_str(), PyExceptionClass_Name(error.type().ptr()));
  }
  // Paths in it may have any bytes.
  const std::string_view text = hone_last_error();
  const nb::object message =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (message.is_valid()) PyErr_SetObject(kind.ptr(), message.ptr());
  throw nb::python_error();
}

std::string taken(char* text) {
  std::string copy = text;
  hone_free(text);
  return copy;
}

std::string Problem::text() const {
  char* text = nullptr;
  check(hone_problem_text(problem_, &text));
  return taken(text);
}

void Problem::set_graph(bool is_graph) { check(hone_problem_set_graph(problem_, is_graph ? 1 : 0)); }

Session::Session(const std::string& device, const Options& options) : process_(getpid()) {
  hone_session_options all;
  check(hone_session_options_init(&all, sizeof all));
  if (options.on_miss) all.on_miss = *options.on_miss;
  if (options.tune_budget_ms) all.tune_budget_ms = *options.tune_budget_ms;
  if (options.cache) all.cache_path = options.cache->c_str();
  if (options.capture_workspaces) all.capture_workspaces = *options.capture_workspaces;
  if (options.cache_read_only) all.cache_read_only = 1;
  if (options.validate) all.validate_pointers = 1;
  if (options.objective) all.objective = *options.objective;
  run([&] { return hone_device_open(device.c_str(), &device_); });
  try {
    run([&] { return hone_session_create(device_, &all, &session_); });
  } catch (...) {
    hone_device_close(device_);
    throw;
  }
  const std::string name = device_name();
  index_ = name == "host" ? kHost : std::stoi(name.substr(name.find(':') + 1));
}

Session::~Session() {
  if (getpid() != process_) return;
  const WithoutGil released;
  hone_session_destroy(session_);
  hone_device_close(device_);
}

std::string Session::facts() const {
  char* json = nullptr;
  check(hone_device_facts(device_, &json));
  return taken(json);
}

std::string Session::counters() const {
  char* json = nullptr;
  check(hone_session_counters(session_, &json));
  return taken(json);
}

void Session::synchronize(std::uintptr_t stream) {
  run([&] { return hone_synchronize(device_, reinterpret_cast<void*>(stream)); });
}

bool Session::prepare(const Problem& problem) {
  hone_choice choice;
  check(hone_choice_init(&choice, sizeof choice));
  run([&] { return hone_prepare(session_, problem.get(), &choice); });
  return choice.tuned != 0;
}

std::string Session::stored_tuning(const Problem& problem) const {
  char* json = nullptr;
  run([&] { return hone_stored_tuning(session_, problem.get(), &json); });
  return taken(json);
}

std::string Session::tune(const Problem& problem, std::int64_t budget_ms, nb::object function) {
  Progress progress{std::move(function), std::nullopt};
  char* json = nullptr;
  hone_status status = HONE_OK;
  {
    const WithoutGil released;
    status = hone_tune_with_progress(session_, problem.get(), budget_ms, report, &progress, &json);
  }
  std::string text = json == nullptr ? "" : taken(json);
  if (progress.raised) throw nb::python_error(*progress.raised);
  check(status);
  return text;
}

Session& session_for(nb::handle given, const Array& array, const char* name) {
  if (given.is_none()) {
    const auto at = static_cast<std::size_t>(array.device + 1);
    if (default_sessions().size() <= at) default_sessions().resize(at + 1);
    if (!default_sessions()[at].is_valid()) {
      nb::object made = hooks().default_session(name_of(array.device));
      default_sessions()[at] = std::move(made);
    }
    return *nb::inst_ptr<Session>(default_sessions()[at]);
  }
  Session* session = nullptr;
  if (!nb::try_cast<Session*>(given, session) || session == nullptr)
    throw nb::type_error("session: a hone.Session is wanted");
  if (session->device() != array.device) {
    const std::string message =
        std::string(name) + " is on " + name_of(array.device) + ", the session on " + name_of(session->device());
    throw nb::value_error(message.c_str());
  }
  return *session;
}

void forget_default_sessions() {
  for (nb::object& session : default_sessions()) session.release();
  default_sessions().clear();
}

}  // namespace hone::python
