#include "tuner/occupancy/occupancy_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <optional>

#include <hone/kernel_family.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/sdk/candidate_plan.h>
#include <hone/sdk/gpu_kernel.h>
#include <hone/sdk/known_gpus.h>

#include "cache/store.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/gpu_facts.h"
#include "tuner/context/json_output.h"
#include "tuner/context/kernel_file.h"
#include "tuner/occupancy/occupancy_report.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/extents.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw CommandError(ExitCode::usage, why); }

int parse_limit(std::string_view option, const std::string& text, unsigned least, unsigned most) {
  const unsigned value = parse_unsigned(option, text);
  if (value < least || value > most) refuse(fmt::format("{}: {} is outside of {} … {}", option, value, least, most));
  return static_cast<int>(value);
}

/// The GPU, with the limits of an SM that the options change: those of a textbook's example.
DeviceFacts gpu_of(const OccupancyOptions& options) {
  DeviceFacts facts = choose_gpu(options.gpu);
  if (!options.sm_threads.empty()) {
    facts.max_threads_per_sm = parse_limit("--sm-threads", options.sm_threads, 32, 16384);
    if (facts.max_threads_per_sm % facts.warp_threads != 0)
      refuse(fmt::format("--sm-threads: {} is no multiple of a warp", facts.max_threads_per_sm));
  }
  if (!options.sm_blocks.empty()) facts.max_blocks_per_sm = parse_limit("--sm-blocks", options.sm_blocks, 1, 256);
  return facts;
}

void require_numbers(const OccupancyOptions& options) {
  if (options.block.empty() && options.registers.empty() && options.smem == "0")
    refuse("of which kernel? Name a .cu file, a winner's ID, or give --block, --registers and --smem");
  if (!options.entry.empty()) refuse("--entry names a kernel of a .cu file, and none was given");
}

void ask_of_file(const OccupancyOptions& options, OccupancyQuestion& question) {
  if (!options.registers.empty()) refuse("--registers with a .cu file: its registers are what NVRTC gives it");
  const Unit unit = read_one_kernel(options.kernel, options.entry);
  question.resources = gpu_resources(unit, question.facts.architecture);
  question.what = fmt::format("{} of {}, compiled by NVRTC", unit.entries.front(), options.kernel);
}

cache::StoredWinner find_winner(const OccupancyOptions& options, const Context& context) {
  const std::int64_t id = parse_winner_id(options.kernel);
  const auto path = required_cache_path(options.cache, context.environment.session_options());
  std::uint64_t damaged = 0;
  std::vector<cache::StoredWinner> all = cache::Store(path).winners(&damaged);
  say_damaged(path, damaged, context);
  for (cache::StoredWinner& stored : all)
    if (stored.id == id) return std::move(stored);
  refuse(fmt::format("there is no winner {} in {}; see: hone inspect --cache {}", id, printable(path.string()),
                     printable(shell_quoted(path.string()))));
}

/// A winner's policy, compiled for the GPU unless it was stored for the same architecture.
void ask_of_winner(const OccupancyOptions& options, const cache::StoredWinner& stored, OccupancyQuestion& question) {
  for (const std::string* option : {&options.registers, &options.block, &options.entry})
    if (!option->empty()) refuse("--block, --registers and --entry have no meaning for a winner, which has its own");
  const cache::CandidateRecord& candidate = stored.winner.candidate;
  const std::optional<Problem> problem = problem_of(stored.key.problem, stored.winner.tuned_extents);
  const std::optional<Policy> policy = problem ? problem->family->space().parse(candidate.policy) : std::nullopt;
  if (!policy)
    refuse(
        fmt::format("winner {} is of the family '{}', which hone does not have; give its numbers instead: --block "
                    "{}{} --smem {}",
                    stored.id, printable(stored.key.problem.family), candidate.block_threads,
                    // The host device does not count any.
                    candidate.registers > 0 ? fmt::format(" --registers {}", candidate.registers) : "",
                    candidate.static_smem_bytes));
  const WorkShape shape = problem->family->shape(*problem, *policy);
  question.what = fmt::format("{}: {} in {}", problem_label(*problem), short_policy(candidate.policy),
                              blocks_text(candidate.max_blocks));
  question.block_threads = shape.block_threads;
  question.dynamic_smem_bytes = shape.dynamic_smem_bytes;
  question.bytes_in_flight_per_block = shape.bytes_in_flight_per_block;
  question.grid_blocks = std::clamp<std::int64_t>(shape.tiles, 1, candidate.max_blocks);
  if (stored.key.device.architecture == question.facts.architecture) {
    question.resources = {.registers = candidate.registers,
                          .static_smem_bytes = candidate.static_smem_bytes,
                          .local_bytes = candidate.local_bytes,
                          .max_threads_per_block = candidate.max_threads_per_block};
    return;
  }
  const auto device = make_absent_gpu(question.facts);
  const CandidatePlan plan = plan_candidates(*device, *problem, std::vector<Policy>{*policy});
  const std::vector<Trial>& trials = plan.candidates.empty() ? plan.rejected : plan.candidates;
  if (plan.compiled == 0)
    throw CommandError(ExitCode::not_tuned, fmt::format("{} is nothing for {}: {}", question.what, question.facts.name,
                                                        trials.empty() ? "" : trials.front().reason.text()));
  question.resources = trials.front().resources;
}

std::int64_t blocks_of_grid(const std::string& text) {
  const Dim3 grid = parse_extents("--grid", text);
  const auto blocks = std::int64_t{grid.x} * grid.y;
  if (blocks < 1 || grid.z < 1 || blocks > std::numeric_limits<std::int64_t>::max() / grid.z)
    refuse(fmt::format("--grid: '{}' is no grid", printable(text)));
  return blocks * grid.z;
}

/// Adds the grid and the bytes in flight that the options name.
void ask_of_grid(const OccupancyOptions& options, OccupancyQuestion& question) {
  if (!options.grid.empty() && !options.size.empty()) refuse("--grid and --size each say how many blocks there are");
  if (!options.grid.empty()) question.grid_blocks = blocks_of_grid(options.grid);
  const bool needs_block = !options.size.empty() || !options.in_flight.empty();
  const int threads = question.block_threads > 0 || !needs_block ? question.block_threads
                                                                 : report_occupancy(question).question.block_threads;
  if (!options.size.empty()) {
    const std::int64_t per_block = threads * std::int64_t{parse_limit("--per-thread", options.per_thread, 1, 1 << 20)};
    question.grid_blocks = (parse_size(options.size) + per_block - 1) / per_block;
  }
  if (!options.in_flight.empty())
    question.bytes_in_flight_per_block = threads * std::int64_t{parse_limit("--in-flight", options.in_flight, 1, 4096)};
}

}  // namespace

void set_up_occupancy(CLI::App& app, OccupancyOptions& options) {
  CLI::App* sub = app.add_subcommand("occupancy");
  file_name(sub->add_option("kernel", options.kernel));
  sub->add_option("--entry", options.entry);
  one_of(sub->add_option("--gpu", options.gpu), gpu_words);
  sub->add_option("--block", options.block);
  sub->add_option("--registers", options.registers);
  sub->add_option("--smem", options.smem);
  sub->add_option("--grid", options.grid);
  sub->add_option("--size", options.size);
  sub->add_option("--per-thread", options.per_thread);
  sub->add_option("--in-flight", options.in_flight);
  sub->add_option("--sm-threads", options.sm_threads);
  sub->add_option("--sm-blocks", options.sm_blocks);
  file_name(sub->add_option("--cache", options.cache));
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_occupancy(const OccupancyOptions& options, const Context& context) {
  const bool is_winner = !options.kernel.empty() && options.kernel.find_first_not_of("0123456789") == std::string::npos;
  OccupancyQuestion question;
  std::optional<cache::StoredWinner> winner;
  if (is_winner) winner = find_winner(options, context);
  // A winner is looked at on its own GPU unless another one is named.
  const bool is_known = winner && options.gpu == "auto" && find_known_gpu(winner->key.device.name) != nullptr;
  OccupancyOptions chosen = options;
  if (is_known) chosen.gpu = winner->key.device.name;
  question.facts = gpu_of(chosen);
  if (!options.block.empty()) {
    const Dim3 block = parse_block("--block", options.block);
    question.block_threads = static_cast<int>(block.x * block.y * block.z);
  }
  if (!options.registers.empty()) question.resources.registers = parse_limit("--registers", options.registers, 1, 255);
  question.dynamic_smem_bytes = parse_smem_bytes("--smem", options.smem);
  if (winner)
    ask_of_winner(options, *winner, question);
  else if (!options.kernel.empty())
    ask_of_file(options, question);
  else
    require_numbers(options);
  ask_of_grid(options, question);
  const OccupancyReport report = report_occupancy(std::move(question));
  if (options.json)
    print_json(to_json(report), context);
  else
    print_report(report, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
