#include "tuner/stats/stats_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <vector>

#include <hone/error.h>

#include "cache/process.h"
#include "tuner/context/json_output.h"
#include "tuner/text/extents.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Programs that end without ending their sessions leave files behind.
bool is_running(std::int64_t process) { return kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

/// True if the process is known to have ended: its number may be that of another by now, or mean something else on the
/// machine or in the container that wrote the file.
bool has_ended(const Json& session) {
  return session.contains("identity") && session["identity"].is_string() &&
         cache::has_ended(session["identity"].get<std::string>());
}

/// The sessions of running processes, by process and session. What is no such file is left out; those of processes that
/// have ended are removed.
std::vector<Json> read_sessions(const fs::path& folder) {
  std::error_code error;
  std::vector<Json> sessions;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("hone-") || !name.ends_with(".json")) continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Json json = Json::parse(text, nullptr, false);
    const auto is_number = [&](const char* field) { return json.contains(field) && json[field].is_number_integer(); };
    if (!json.is_object() || !is_number("process") || !is_number("session") || !json.contains("counters")) continue;
    if (has_ended(json)) {
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
      continue;
    }
    if (json["process"].get<std::int64_t>() > 0 && is_running(json["process"].get<std::int64_t>()))
      sessions.push_back(std::move(json));
  }
  if (error)
    throw Error(ErrorCode::io_failed,
                fmt::format("'{}' cannot be read: {}", printable(folder.string()), error.message()));
  std::sort(sessions.begin(), sessions.end(), [](const Json& a, const Json& b) {
    return std::pair(a["process"].get<std::int64_t>(), a["session"].get<std::int64_t>()) <
           std::pair(b["process"].get<std::int64_t>(), b["session"].get<std::int64_t>());
  });
  return sessions;
}

std::string cell(const Json& json, const char* field) {
  if (!json.is_object() || !json.contains(field)) return std::string(kUnknown);
  return json[field].is_string() ? json[field].get<std::string>() : json[field].dump();
}

void print_table(const std::vector<Json>& sessions, const Context& context) {
  Table table({{"process", Align::right},
               {"session", Align::right, 3},
               {"program"},
               {"device"},
               {"from cache", Align::right},
               {"tuned", Align::right},
               {"nearest", Align::right},
               {"shipped", Align::right, 4},
               {"heuristic", Align::right},
               {"compiled", Align::right},
               {"stale", Align::right, 1},
               {"waited", Align::right, 2},
               {"refused", Align::right, 5},
               {"failures", Align::right}});
  for (const Json& session : sessions) {
    const Json& counters = session["counters"];
    table.add_row({cell(session, "process"), cell(session, "session"),
                   fs::path(cell(session, "program")).filename().string(), cell(session, "device"),
                   cell(counters, "cache_hits"), cell(counters, "tunings"), cell(counters, "nearest"),
                   cell(counters, "shipped"),
                   cell(counters, "heuristics"), cell(counters, "compiles"), cell(counters, "stale_hits"),
                   cell(counters, "waits"), cell(counters, "refused_grids"), cell(counters, "cache_failures")});
  }
  table.print(context.out, context.environment.out_columns());
}

}  // namespace

void set_up_stats(CLI::App& app, StatsOptions& options) {
  CLI::App* sub = app.add_subcommand("stats");
  sub->add_option("PID", options.process);
  file_name(sub->add_option("--folder", options.folder)->take_last());
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_stats(const StatsOptions& options, const Context& context) {
  const fs::path folder =
      options.folder.empty() ? context.environment.session_options().stats_folder : fs::path(options.folder);
  if (folder.empty())
    throw CommandError(
        ExitCode::usage,
        "where do programs write their counters? Start them with HONE_STATS=FOLDER, and set it here, too, "
        "or give --folder");
  std::vector<Json> sessions = read_sessions(folder);
  if (!options.process.empty()) {
    const std::int64_t process = parse_unsigned("PID", options.process);
    std::erase_if(sessions, [&](const Json& session) { return session["process"].get<std::int64_t>() != process; });
    if (sessions.empty())
      throw CommandError(ExitCode::input,
                         fmt::format("process {} has no session in {}; was it started with HONE_STATS?", process,
                                     printable(folder.string())));
  }
  if (options.json) {
    print_json({{"folder", folder.string()}, {"sessions", sessions}}, context);
    return ExitCode::ok;
  }
  if (sessions.empty())
    context.err << "hone: no program writes its counters to " << printable(folder.string()) << '\n';
  else
    print_table(sessions, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
