#include "tuner/explain/counters.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include <hone/device.h>
#include <hone/kernel_family.h>
#include <hone/session.h>
#include <hone/tune_arguments.h>

#include "cache/store.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// A metric of ncu, and what it is in words.
struct Metric {
  std::string_view name;
  std::string_view words;
  double scale;  ///< from ncu's base units to the shown one
  std::string_view unit;
};

/// Time, traffic, and how busy memory, the issue slots and the warps' slots of the kernels were.
constexpr std::array<Metric, 11> kMetrics{{
    {"gpu__time_duration.sum", "time", 1e-3, "µs"},
    {"dram__bytes_read.sum", "read from memory", 1e-6, "MB"},
    {"dram__bytes_write.sum", "written to memory", 1e-6, "MB"},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "memory busy", 1, "%"},
    {"lts__t_sector_hit_rate.pct", "hits in L2", 1, "%"},
    {"sm__issue_active.avg.pct_of_peak_sustained_elapsed", "issue slots busy", 1, "%"},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "warps active", 1, "%"},
    {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "stalled on memory", 1,
     "warps per issue"},
    {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "stalled at barriers", 1, "warps per issue"},
    {"launch__registers_per_thread", "registers a thread", 1, ""},
    {"launch__waves_per_multiprocessor", "waves", 1, ""},
}};

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const Metric& metric : kMetrics) names.emplace_back(metric.name);
  return names;
}

std::vector<std::string> ncu_command(const cache::StoredWinner& stored, const std::filesystem::path& cache,
                                     const std::filesystem::path& program, const std::string& kernel_file,
                                     const std::vector<std::string>& metrics) {
  std::vector<std::string> words{"ncu",
                                 "--cache-control",
                                 "all",
                                 "--clock-control",
                                 "none",
                                 "--csv",
                                 "--page",
                                 "raw",
                                 "--print-units",
                                 "base",
                                 "--metrics",
                                 fmt::format("{}", fmt::join(metrics, ",")),
                                 program.string(),
                                 std::string(kCountedCommand),
                                 cache.string(),
                                 fmt::format("{}", stored.id),
                                 stored.key.device.kind == "cuda" ? "auto" : stored.key.device.kind};
  if (!kernel_file.empty()) words.push_back(std::filesystem::absolute(kernel_file));
  return words;
}

/// The problem that the winner was measured on; nullopt where its family is neither built in nor that of the file.
std::optional<Problem> counted_problem(const cache::StoredWinner& stored, const std::string& kernel_file) {
  const cache::ProblemRecord& record = stored.key.problem;
  if (kernel_file.empty()) return tuner::problem_of(record, stored.winner.tuned_extents);
  return tuner::problem_of(record, stored.winner.tuned_extents, Families(&kernel_file_family(kernel_file), 1));
}

/// The command as a shell reads it.
std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(shell_quoted(word));
  return text;
}

/// The program's own file: what it is called in /proc is another one for its children.
std::filesystem::path own_program(const Context& context) {
  std::error_code ignored;
  const std::filesystem::path named = context.environment.worker_program;
  const std::filesystem::path found = std::filesystem::canonical(named, ignored);
  return found.empty() ? named : found;
}

/// This process's environment, in which programs print numbers as in C.
std::vector<std::string> plain_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("LC_ALL=")) variables.emplace_back(*variable);
  variables.emplace_back("LC_ALL=C");
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// A program that has ended, with what it wrote to both of its outputs.
struct Ended {
  int start_error = 0;  ///< not 0: it could not be started
  int status = 0;       ///< of waitpid()
  std::string printed = {};

  bool is_well() const { return start_error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

Ended run_and_read(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  Ended ended;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.start_error = errno};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  std::vector<std::string> variables = plain_environment();
  pid_t child = 0;
  ended.start_error = posix_spawnp(&child, words.front().c_str(), &files, nullptr, pointers_to(words).data(),
                                   pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  std::array<char, 4096> some;
  while (ended.start_error == 0) {
    const ssize_t size = read(ends[0], some.data(), some.size());
    if (size > 0) ended.printed.append(some.data(), static_cast<std::size_t>(size));
    else if (size == 0 || errno != EINTR) break;
  }
  close(ends[0]);
  if (ended.start_error != 0) return ended;
  while (waitpid(child, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

[[noreturn]] void refuse_counters(std::string_view what, const std::vector<std::string>& words) {
  throw CommandError(ExitCode::failed, fmt::format("--counters: {}:\n  {}", what, printable(shell_text(words))));
}

std::string number_text(double value) {
  return fmt::format("{:.{}f}", value, value == std::floor(value) ? 0 : value < 10 ? 2 : 1);
}

}  // namespace

std::vector<CountedKernel> count_kernels(const cache::StoredWinner& stored, const std::filesystem::path& cache,
                                         const std::string& kernel_file, const Context& context) {
  if (stored.key.device.kind != "cuda")
    throw CommandError(ExitCode::usage,
                       fmt::format("--counters: Nsight Compute counts on GPUs, and winner {} is one of {}", stored.id,
                                   printable(stored.key.device.name)));
  if (!counted_problem(stored, kernel_file))
    throw CommandError(ExitCode::not_tuned,
                       fmt::format("--counters: winner {} is of the kernel {}, which is not built in; name its kernel "
                                   "file with --family {}.toml, or run the program that it belongs to under ncu",
                                   stored.id, printable(stored.key.problem.family),
                                   printable(stored.key.problem.family)));
  std::vector<std::string> metrics = metric_names();
  while (true) {
    const std::vector<std::string> words =
        ncu_command(stored, std::filesystem::absolute(cache), own_program(context), kernel_file, metrics);
    const Ended ended = run_and_read(words);
    if (ended.start_error != 0)
      refuse_counters(fmt::format("no ncu could be started ({}); it is a part of the CUDA toolkit's Nsight Compute. "
                                  "Where it is on PATH, this shows the counters",
                                  std::strerror(ended.start_error)),
                      words);
    std::vector<CountedKernel> kernels = parse_ncu(ended.printed);
    if (ended.is_well() && !kernels.empty()) return kernels;
    const std::vector<std::string> unknown = unknown_metrics(ended.printed);
    const std::size_t asked = metrics.size();
    std::erase_if(metrics, [&](const std::string& metric) {
      return std::ranges::find(unknown, metric.substr(0, metric.find('.'))) != unknown.end();
    });
    if (metrics.size() < asked && !metrics.empty()) continue;  // another GPU, or another ncu, has no such metric
    context.err << printable_lines(ended.printed) << '\n';
    if (ended.printed.find("ERR_NVGPUCTRPERM") != std::string::npos)
      refuse_counters("the permission to read the GPU's counters is missing; run this as root, or load the driver with "
                      "NVreg_RestrictProfilingToAdminUsers=0",
                      words);
    refuse_counters(ended.is_well() ? "ncu counted no kernel; what it wrote says why"
                                    : "this failed; what it wrote says why",
                    words);
  }
}

void print_counters(const std::vector<CountedKernel>& kernels, const Context& context) {
  std::vector<Column> columns{{"counter"}};
  for (std::size_t i = 0; i < kernels.size(); ++i)
    columns.push_back({kernels.size() == 1 ? "kernel" : fmt::format("kernel {}", i + 1), Align::right});
  columns.push_back({"unit"});
  Table table(columns);
  for (const Metric& metric : kMetrics) {
    std::vector<std::string> row{std::string(metric.words)};
    for (const CountedKernel& kernel : kernels) {
      const std::optional<double> value = kernel.value(metric.name);
      row.push_back(value ? number_text(*value * metric.scale) : std::string(kUnknown));
    }
    row.emplace_back(metric.unit);
    table.add_row(std::move(row));
  }
  context.out << "Counted by Nsight Compute in one call, with nothing in any cache:\n";
  table.print(context.out, 0, 2);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    context.out << fmt::format("  {}: {}\n", kernels.size() == 1 ? "kernel" : fmt::format("kernel {}", i + 1),
                               printable(kernels[i].name));
}

nlohmann::ordered_json to_json(const std::vector<CountedKernel>& kernels) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const CountedKernel& kernel : kernels) {
    nlohmann::ordered_json counters = nlohmann::ordered_json::object();
    for (const Counter& counter : kernel.counters)
      counters[counter.metric] = {{"value", counter.value ? nlohmann::ordered_json(*counter.value) : nullptr},
                                  {"unit", counter.unit}};
    json.push_back({{"kernel", kernel.name}, {"counters", std::move(counters)}});
  }
  return json;
}

int run_counted(std::span<const std::string> arguments) try {
  if (arguments.size() != 3 && arguments.size() != 4)
    throw CommandError(ExitCode::usage, "this subcommand is for hone explain --counters");
  const std::int64_t id = parse_winner_id(arguments[1]);
  const std::vector<cache::StoredWinner> all = cache::Store(arguments[0]).winners();
  const auto stored = std::ranges::find(all, id, &cache::StoredWinner::id);
  const std::optional<Problem> problem =
      stored == all.end() ? std::nullopt : counted_problem(*stored, arguments.size() == 4 ? arguments[3] : "");
  if (!problem) throw CommandError(ExitCode::usage, fmt::format("no winner {} can be run", id));

  SessionOptions options;
  options.cache_path = arguments[0];
  options.cache_read_only = true;
  options.on_miss = stored->winner.tuned ? MissPolicy::error : MissPolicy::heuristic;
  options.objective = parse_objective(stored->key.problem.objective);
  const std::shared_ptr<Device> device = Device::open(arguments[2]);
  Session session(device, options);
  const Stream stream = device->create_stream();
  std::vector<DeviceBuffer> memory;
  std::vector<void*> buffers;
  for (const BufferSpec& spec : problem->family->buffers(*problem)) {
    const std::size_t bytes = std::max<std::size_t>(spec.size_bytes(), 1);
    device->fill_bytes(memory.emplace_back(device, bytes).data(), 0, bytes, stream);
    buffers.push_back(memory.back().data());
  }
  session.launch(*problem, buffers, stream);
  device->synchronize(stream);
  device->destroy_stream(stream);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "hone: " << error.what() << '\n';
  return static_cast<int>(ExitCode::failed);
}

}  // namespace hone::tuner
