#include "tuner/tune_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <hone/session.h>
#include <hone/tuned_reduce.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <string_view>
#include <system_error>
#include <vector>

#include "cache/store.h"
#include "tuner/cache_path.h"
#include "tuner/campaign.h"
#include "tuner/quantities.h"
#include "tuner/selection.h"
#include "tuner/suggest.h"
#include "tuner/table.h"
#include "tuner/tune_output.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

void check_family(std::string_view name) {
  constexpr std::array<std::string_view, 1> kFamilies{"reduce"};
  if (name == kFamilies.front()) return;
  throw CommandError(ExitCode::usage, fmt::format("unknown kernel family '{}'{}; known is reduce", printable(name),
                                                  did_you_mean(name, kFamilies)));
}

/// Finds out before minutes are spent whether winners can be stored. Makes the folder, as the first winner would.
void check_cache(const fs::path& path) {
  cache::Store(path).find({});  // throws StoreError where the file cannot be read, or is not trusted with code
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path must_be_writable = !error && fs::exists(path, error) ? path : folder;
  if (!error && access(must_be_writable.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
  if (error) {
    throw CommandError(
        ExitCode::cache,
        fmt::format("winners cannot be stored in '{}': {}: {}; change its permissions or give --cache PATH",
                    printable(path.string()), printable(must_be_writable.string()), error.message()));
  }
}

std::vector<Problem> list_problems(const TuneOptions& options) {
  const std::vector<ReduceOp> ops = parse_ops(options.ops);
  const std::vector<DType> dtypes = parse_dtypes(options.dtypes);
  const std::vector<std::int64_t> sizes = parse_size_list(options.sizes);
  const std::vector<std::uint32_t> alignments = parse_alignments(options.alignments);
  const std::vector<LaunchContext> contexts = parse_contexts(options.context);
  const bool is_single = ops.size() == 1 && dtypes.size() == 1;  // what is not defined is then refused, not left out
  std::vector<Problem> problems;
  const auto add = [&](Problem problem) {
    for (const LaunchContext context : contexts) {
      problem.launch_context = context;
      problems.push_back(problem);
    }
  };
  for (const ReduceOp op : ops) {
    for (const DType dtype : dtypes) {
      for (const std::uint32_t alignment : alignments) {
        // An array is aligned to its element at least: those problems do not exist.
        if (alignment < info(dtype).size_bytes) continue;
        for (const std::int64_t size : sizes)
          if (reduce_supports(op, dtype) || is_single) add(reduce_problem(op, dtype, size, alignment));
      }
    }
  }
  if (problems.empty()) {
    throw CommandError(ExitCode::usage, fmt::format("no problem is left: arrays of {} are aligned to their element at "
                                                    "least, --align {} is less",
                                                    options.dtypes, options.alignments));
  }
  return one_per_size_class(problems);
}

void check_memory(const std::vector<Problem>& problems, const Device& device) {
  const std::int64_t available = device.facts().memory_bytes;
  for (const Problem& problem : problems) {
    const std::int64_t needed = problem.family->bytes_moved(problem);
    if (available > 0 && needed > available) {
      throw CommandError(ExitCode::usage,
                         fmt::format("{} takes {}, but {} has {} of memory; give smaller sizes", problem_label(problem),
                                     format_bytes(needed), device.name(), format_bytes(available)));
    }
  }
}

CampaignOptions campaign_options(const TuneOptions& options) {
  CampaignOptions campaign;
  campaign.budget = parse_duration(options.budget);
  if (!options.total_budget.empty()) campaign.total_budget = parse_duration(options.total_budget);
  campaign.again = options.again;
  campaign.exhaustive = options.exhaustive;
  if (options.warm) campaign.inputs = InputState::warm;
  return campaign;
}

/// How the campaign ended, as message and exit code.
ExitCode conclude(const CampaignResult& result, const fs::path& cache_path, const Context& context) {
  if (!result.cache_failure.empty()) {
    throw CommandError(ExitCode::cache, fmt::format("winners could not be stored: {}", result.cache_failure));
  }
  if (!result.device_failure.empty()) {
    throw CommandError(ExitCode::device, fmt::format("the device failed: {}", result.device_failure));
  }
  context.out << "Winners are in " << printable(cache_path.string()) << "; see them with: hone inspect\n";
  if (result.interrupted) {
    context.err << "hone: interrupted; what was finished is stored, the same command goes on with the rest\n";
    return ExitCode::interrupted;
  }
  if (result.out_of_budget) {
    context.err << "hone: the total budget is spent; the same command goes on with the rest\n";
  }
  for (const CampaignItem& item : result.items) {
    if (item.outcome == Outcome::failed) {
      throw CommandError(ExitCode::not_tuned,
                         fmt::format("{} could not be tuned: {}", problem_label(item.problem), item.reason));
    }
  }
  return ExitCode::ok;
}

}  // namespace

void set_up_tune(CLI::App& app, TuneOptions& options) {
  CLI::App* sub = app.add_subcommand("tune");
  sub->add_option("FAMILY", options.family);
  sub->add_option("--op", options.ops)->take_last();
  sub->add_option("--dtype", options.dtypes)->take_last();
  sub->add_option("--size", options.sizes)->take_last();
  sub->add_option("--align", options.alignments)->take_last();
  sub->add_option("--context", options.context)->take_last();
  sub->add_option("--device", options.device)->take_last();
  sub->add_option("--budget", options.budget)->take_last();
  sub->add_option("--total-budget", options.total_budget)->take_last();
  sub->add_option("--cache", options.cache)->take_last();
  sub->add_flag("--again", options.again)->disable_flag_override();
  sub->add_flag("--exhaustive", options.exhaustive)->disable_flag_override();
  sub->add_flag("--warm", options.warm)->disable_flag_override();
  sub->add_flag("-q,--quiet", options.quiet)->disable_flag_override();
}

ExitCode run_tune(const TuneOptions& options, const Context& context) {
  const auto start = context.environment.now();
  check_family(options.family);
  const std::vector<Problem> problems = list_problems(options);
  CampaignOptions campaign = campaign_options(options);
  SessionOptions session_options = context.environment.session_options();
  required_cache_path(options.cache, session_options);
  choose_cache(session_options, options.cache);
  if (session_options.cache_read_only) {
    throw CommandError(ExitCode::usage, fmt::format("HONE_CACHE says that '{}' is only read, so winners cannot be stored;"
                                                    " give --cache PATH, or take ro: away",
                                                    printable(session_options.cache_path.string())));
  }
  session_options.on_miss = MissPolicy::error;
  check_cache(session_options.cache_path);

  // Before the device is opened: threads that its driver starts must inherit who takes Ctrl-C.
  campaign.stop = context.environment.watch_interrupts();
  campaign.now = context.environment.now;
  const std::shared_ptr<Device> device = open_device(options.device);
  check_memory(problems, *device);

  Session session(device, session_options);
  CampaignResult result;
  {
    TuneProgressPrinter printer(context, device->facts(), campaign, options.quiet);
    result = run_campaign(session, problems, campaign, printer);
  }
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(context.environment.now() - start);
  print_summary(result, device->facts(), elapsed, context);
  return conclude(result, session_options.cache_path, context);
}

}  // namespace hone::tuner
