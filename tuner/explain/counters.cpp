#include "tuner/explain/counters.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <optional>
#include <ostream>
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

/// Time, traffic, and how busy memory, the issue slots, the warps' slots and the pipes of the kernels were.
constexpr std::string_view kMetrics =
    "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
    "dram__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_sector_hit_rate.pct,"
    "sm__issue_active.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active,"
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio,"
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio,launch__registers_per_thread,"
    "launch__waves_per_multiprocessor";

std::vector<std::string> ncu_command(const cache::StoredWinner& stored, const std::filesystem::path& cache,
                                     const std::filesystem::path& program, const std::string& kernel_file) {
  std::vector<std::string> words{
      "ncu",
      "--cache-control",
      "all",
      "--clock-control",
      "none",
      "--metrics",
      std::string(kMetrics),
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
  for (const std::string& word : words) {
    const bool is_plain =
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,") ==
        std::string::npos;
    text.append(text.empty() ? "" : " ").append(is_plain ? word : shell_quoted(word));
  }
  return text;
}

/// The program's own file: what it is called in /proc is another one for its children.
std::filesystem::path own_program(const Context& context) {
  std::error_code ignored;
  const std::filesystem::path named = context.environment.worker_program;
  const std::filesystem::path found = std::filesystem::canonical(named, ignored);
  return found.empty() ? named : found;
}

}  // namespace

void print_counters(const cache::StoredWinner& stored, const std::filesystem::path& cache,
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
  std::vector<std::string> words =
      ncu_command(stored, std::filesystem::absolute(cache), own_program(context), kernel_file);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  context.out.flush();
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0)
    throw CommandError(
        ExitCode::failed,
        fmt::format("--counters: no ncu could be started ({}); it is a part of the CUDA toolkit's Nsight "
                    "Compute. Where it is on PATH, this shows the counters:\n  {}",
                    std::strerror(error), printable(shell_text(words))));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw CommandError(ExitCode::failed, fmt::format("--counters: this failed; what it wrote says why:\n  {}",
                                                     printable(shell_text(words))));
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
  options.on_miss = MissPolicy::error;
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
