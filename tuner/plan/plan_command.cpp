#include "tuner/plan/plan_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <limits>
#include <memory>
#include <ostream>

#include <hone/device.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/session.h>

#include "tuner/campaign/campaign_plan.h"
#include "tuner/context/gpu_facts.h"
#include "tuner/context/json_output.h"
#include "tuner/plan/plan_report.h"
#include "tuner/problems/selection.h"
#include "tuner/text/extents.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// Policies that are compiled for one problem, of hundreds; for several problems the first alone.
constexpr std::size_t kPoliciesOfOne = 16;

std::shared_ptr<Device> device_of(const std::string& gpu) {
  if (gpu.empty()) throw CommandError(ExitCode::usage, "for which GPU? Name it with --gpu; see: hone devices --known");
  if (gpu.starts_with("cuda:") || gpu == "auto") return Device::open(gpu);
  return make_absent_gpu(choose_gpu(gpu));
}

std::size_t policies_of(const PlanOptions& options, std::size_t problems) {
  if (options.policies.empty()) return problems == 1 ? kPoliciesOfOne : 1;
  if (options.policies == kAll) return std::numeric_limits<std::size_t>::max();
  const unsigned policies = parse_unsigned("--policies", options.policies);
  if (policies == 0) throw CommandError(ExitCode::usage, "--policies: at least one is compiled, or all");
  return policies;
}

/// The session that chooses predicted winners, and stores them in the output file if there is one.
SessionOptions session_options(const PlanOptions& options) {
  return {.on_miss = MissPolicy::heuristic, .cache_path = options.output, .capture_workspaces = 0};
}

void require_stored(const Session& session, const PlanOptions& options) {
  const SessionCounters counters = session.counters();
  if (options.output.empty() || counters.not_stored == 0) return;
  throw CommandError(ExitCode::cache, fmt::format("predicted winners could not be stored in '{}': {}",
                                                  printable(options.output), counters.last_cache_failure));
}

}  // namespace

void set_up_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* sub = app.add_subcommand("plan");
  add_problem_options(*sub, options.problems);
  one_of(sub->add_option("--gpu", options.gpu)->take_last(), gpu_words);
  one_of(sub->add_option("--policies", options.policies)->take_last(), [] { return Words{std::string(kAll)}; });
  file_name(sub->add_option("--output,-o", options.output)->take_last());
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_plan(const PlanOptions& options, const Context& context) {
  require_one_source(options.problems);
  const std::vector<WeightedProblem> problems =
      one_per_size_class(choose_problems(options.problems, context.err).problems);
  const std::size_t policies = policies_of(options, problems.size());
  const std::shared_ptr<Device> device = device_of(options.gpu);
  Session session(device, session_options(options));
  std::vector<PlannedProblem> planned;
  for (const WeightedProblem& each : problems) {
    PlannedProblem& next = planned.emplace_back(PlannedProblem{
        .problem = each.problem, .plan = plan_candidates(*device, each.problem, policies), .winner = {}});
    next.winner = *session.prepare(each.problem).winner;
    require_stored(session, options);
  }
  if (options.json) {
    nlohmann::ordered_json json{{"gpu", facts_json(device->facts())}, {"problems", nlohmann::ordered_json::array()}};
    for (const PlannedProblem& each : planned) json["problems"].push_back(to_json(each));
    print_json(json, context);
    return ExitCode::ok;
  }
  const DeviceFacts& facts = device->facts();
  context.out << printable(fmt::format("{} ({})", facts.name, facts.architecture)) << "\n\n";
  if (planned.size() == 1)
    print_candidates(planned.front(), facts, context);
  else
    print_winners(planned, facts, context);
  if (!options.output.empty())
    context.out << fmt::format("\n{} in {}; ship it, and name it in HONE_CACHE_PATH\n",
                               count_text(static_cast<std::int64_t>(planned.size()), "predicted winner"),
                               printable(options.output));
  return ExitCode::ok;
}

}  // namespace hone::tuner
