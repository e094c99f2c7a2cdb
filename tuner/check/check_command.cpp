#include "tuner/check/check_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/sdk/known_gpus.h>
#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "tuner/check/check_arguments.h"
#include "tuner/check/check_policies.h"
#include "tuner/check/check_process.h"
#include "tuner/check/gpu_check.h"
#include "tuner/context/json_output.h"
#include "tuner/context/kernel_file.h"
#include "tuner/context/status_line.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/extents.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// The launch that the options describe. What no GPU can launch is refused here, before anything is compiled.
Launch launch_of(const CheckOptions& options) {
  Launch launch;
  launch.grid = parse_extents("--grid", options.grid);
  if (!options.block.empty()) launch.block = parse_block("--block", options.block);
  launch.dynamic_smem_bytes = parse_smem_bytes("--smem", options.smem);
  if (launch.grid.x < 1 || launch.grid.y < 1 || launch.grid.z < 1)
    throw CommandError(ExitCode::usage, "--grid: a grid has at least one block");
  return launch;
}

std::vector<HostOrder> orders_of(const CheckOptions& options) {
  if (options.orders.empty()) return default_host_orders();
  std::vector<HostOrder> orders;
  for (const std::string& order : options.orders) orders.push_back(parse_host_order(order));
  return orders;
}

std::string orders_text(const std::vector<HostOrder>& orders) {
  std::string text;
  for (const HostOrder& order : orders) text.append(text.empty() ? "" : ", ").append(to_string(order));
  return text;
}

/// The command that makes the failed check once more: as it was typed, with the orders that matter alone.
std::string replay_command(const CheckOptions& options, const std::vector<HostOrder>& orders, const HostOrder& failed) {
  const CheckOptions usual;
  std::string text = "hone check " + shell_quoted(options.file);
  const auto add = [&text](std::string_view name, const std::string& value) {
    text.append(" ").append(name).append(" ").append(shell_quoted(value));
  };
  const auto add_unusual = [&](std::string_view name, std::string CheckOptions::*option) {
    if (options.*option != usual.*option) add(name, options.*option);
  };
  add_unusual("--entry", &CheckOptions::entry);
  add_unusual("--arch", &CheckOptions::architecture);
  add_unusual("--grid", &CheckOptions::grid);
  add_unusual("--block", &CheckOptions::block);
  add_unusual("--smem", &CheckOptions::smem);
  for (const std::string& argument : options.arguments) add("--arg", argument);
  add_unusual("--size", &CheckOptions::size);
  add_unusual("--deadline", &CheckOptions::deadline);
  add("--order", to_string(orders.front()));
  if (failed != orders.front()) add("--order", to_string(failed));
  return text;
}

HostCheck host_check(const Unit& unit, const CheckOptions& options, const Launch& launch) {
  HostCheck check;
  check.unit = unit;
  std::vector<CheckArgument> arguments;
  for (const std::string& text : options.arguments) arguments.push_back(parse_check_argument(text));
  if (arguments.size() > Arguments::kCapacity) {
    throw CommandError(ExitCode::usage, fmt::format("{} arguments were given; a kernel may have {}", arguments.size(),
                                                    Arguments::kCapacity));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const CheckArgument& argument = arguments[i];
    if (argument.is_buffer)
      check.buffers.push_back(
          {fmt::format("argument {}: {}", i + 1, argument.text), argument.bytes, argument.compared});
  }
  check.orders = orders_of(options);
  check.deadline = parse_duration(options.deadline);
  check.run = [arguments, launch](const HostRun& run) {
    Launch one = launch;
    std::size_t buffer = 0;
    for (const CheckArgument& argument : arguments)
      push_argument(one.arguments, argument, argument.is_buffer ? run.buffer<void>(buffer++) : nullptr);
    run.launch(one);
  };
  return check;
}

HostCheckReport run_on_host(const HostCheck& check) {
  try {
    return check_in_child(check);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw CommandError(ExitCode::usage, fmt::format("{}; give an --arg for each parameter", error.what()));
  }
}

std::string not_traced_line(const HostCheckReport& report) {
  if (report.not_traced.empty()) return "";
  return fmt::format("  updates that may be lost were not looked for: {}\n", report.not_traced);
}

void print_host(const HostCheckReport& report, const HostCheck& check, const CheckOptions& options,
                std::ostream& out) {
  out << "Host device, threads and blocks in the orders " << orders_text(check.orders) << "\n";
  if (report.ok()) {
    out << "  no check found anything, and all orders gave the same bytes\n"
        << not_traced_line(report)
        << "  next: describe it in a kernel file, which hone tune takes (docs/own-kernel.md)\n";
    return;
  }
  out << "  to see it again: " << replay_command(options, check.orders, report.failed_order) << "\n"
      << report.failure << "\n";
}

nlohmann::ordered_json report_json(const HostCheckReport& report) {
  if (report.ok()) {
    nlohmann::ordered_json json{{"ok", true}, {"failure", nullptr}, {"failed_order", nullptr}};
    if (!report.not_traced.empty()) json["not_traced"] = report.not_traced;
    return json;
  }
  return {{"ok", false}, {"failure", report.failure}, {"failed_order", to_string(report.failed_order)}};
}

nlohmann::ordered_json host_json(const HostCheckReport& report, const HostCheck& check) {
  nlohmann::ordered_json json = report_json(report);
  json["orders"] = nlohmann::ordered_json::array();
  for (const HostOrder& order : check.orders) json["orders"].push_back(to_string(order));
  return json;
}

/// Sizes that no tile divides, and that take a moment.
constexpr std::array<std::string_view, 3> kCheckedSizes{"1003", "67x45", "19x13x7"};

/// The policies of a kernel file were checked with this.
struct KernelFileCheck {
  std::string file;
  Problem problem;
  std::vector<HostOrder> orders;
  PolicyChecks checks = {};
};

/// The most frequent reasons with their counts, and the numbers of the first policy that has each.
std::string reasons_text(const std::vector<ReasonCount>& reasons) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> texts;
  for (ReasonCount reason : reasons) {
    if (texts.size() == kMost) break;
    const bool varies = std::exchange(reason.varies, false);
    texts.push_back(fmt::format("{} of them{}: {}", reason.count, varies ? ", the first" : "", reason.text()));
  }
  if (reasons.size() > kMost) texts.push_back(fmt::format("{} more reasons", reasons.size() - kMost));
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// All policies that fail are named, and the first is reported; what to do ends the report.
void print_policies(const KernelFileCheck& check, const CheckOptions& options, std::ostream& out) {
  out << printable(fmt::format("{}: {} for {}, in the orders {}", check.file,
                               count_text(std::ssize(check.checks.run), "policy"), problem_label(check.problem),
                               orders_text(check.orders)))
      << '\n';
  std::vector<const PolicyCheck*> failed;
  for (const PolicyCheck& each : check.checks.run)
    if (!each.report.ok()) failed.push_back(&each);
  if (!check.checks.invalid.empty())
    out << printable("  not valid on the host device, so not run: " + reasons_text(check.checks.invalid)) << '\n';
  for (const PolicyCheck* each : failed) out << "  failed: " << each->policy << '\n';
  if (!failed.empty()) {
    const PolicyCheck& first = *failed.front();
    if (check.checks.not_run > 0)
      out << fmt::format("  not run after the last of them, which the deadline stopped: {}\n",
                         count_text(check.checks.not_run, "policy"));
    out << fmt::format("  {} of {} policies failed; to see it again: {}\n\n{}\n{}\n", failed.size(),
                       check.checks.run.size(), replay_command(options, check.orders, first.report.failed_order),
                       first.policy, first.report.failure);
    return;
  }
  const PolicyCheck& any = check.checks.run.front();
  const std::string& not_run = any.report.large_not_run;
  out << "  no check found anything, and all agree with the reference\n" << not_traced_line(any.report);
  const std::string& not_looked_at = check.checks.not_looked_at;
  out << (not_looked_at.empty() ? fmt::format("  NVRTC compiles them for {}\n", options.architecture)
                                : fmt::format("  not compiled for {}: {}\n", options.architecture, not_looked_at));
  if (any.large.empty()) out << "  32-bit indices were not checked: the kernel takes no more than 2^31 elements\n";
  else if (!not_run.empty()) out << fmt::format("  32-bit indices were not checked for {}: {}\n", any.large, not_run);
  else out << fmt::format("  32-bit indices were checked for {}, in blocks at the corners of the grid\n", any.large);
  out << fmt::format("  next: hone tune {}\n", shell_quoted(check.file));
}

/// The fields of one host check are those of a .cu file.
nlohmann::ordered_json policies_json(const KernelFileCheck& check, const CheckOptions& options) {
  nlohmann::ordered_json json{{"file", check.file}, {"problem", problem_label(check.problem)}};
  json["orders"] = nlohmann::ordered_json::array();
  for (const HostOrder& order : check.orders) json["orders"].push_back(to_string(order));
  json["gpu"]["architecture"] = options.architecture;
  if (!check.checks.not_looked_at.empty()) json["gpu"]["not_looked_at"] = check.checks.not_looked_at;
  json["failed"] = std::ranges::count_if(check.checks.run, [](const PolicyCheck& each) { return !each.report.ok(); });
  json["not_run"] = check.checks.not_run;
  json["invalid"] = nlohmann::ordered_json::array();
  for (const ReasonCount& each : check.checks.invalid)
    json["invalid"].push_back({{"count", each.count}, {"reason", each.text()}});
  json["policies"] = nlohmann::ordered_json::array();
  for (const PolicyCheck& each : check.checks.run) {
    nlohmann::ordered_json policy{{"policy", each.policy}};
    policy.update(report_json(each.report));
    const bool is_large_run = each.report.ok() && !each.large.empty() && each.report.large_not_run.empty();
    policy["large"] = is_large_run ? nlohmann::ordered_json(each.large) : nlohmann::ordered_json(nullptr);
    json["policies"].push_back(std::move(policy));
  }
  return json;
}

/// A fault that a check found goes before policies that do not compile.
ExitCode exit_code(const std::vector<PolicyCheck>& policies) {
  ExitCode code = ExitCode::ok;
  for (const PolicyCheck& each : policies) {
    if (each.report.ok()) continue;
    if (each.is_compiled) return ExitCode::failed;
    code = ExitCode::not_tuned;
  }
  return code;
}

/// On a terminal, the status line: "[ 12/156] block_threads=256 unroll=4  about 40 s left".
class CheckProgress {
 public:
  explicit CheckProgress(const Context& context)
      : status_(context), now_(context.environment.now), start_(context.environment.now()) {}

  void operator()(std::string_view policy, std::size_t before, std::size_t all) {
    const std::size_t columns = status_.columns();
    if (columns == 0) return;
    const std::string total = fmt::format("{}", all);
    const std::string head = fmt::format("[{:>{}}/{}] ", before + 1, total.size(), total);
    const std::string left = before == 0 ? "" : fmt::format("  about {} left", format_duration(remaining(before, all)));
    const std::size_t taken = display_width(head) + display_width(left);
    status_.draw(taken < columns ? head + truncate(printable(policy), columns - taken) + left
                                 : truncate(head, columns));
  }

 private:
  /// Policies take as long as those before them did on average.
  std::chrono::milliseconds remaining(std::size_t before, std::size_t all) const {
    const double to_one = static_cast<double>(all - before) / static_cast<double>(before);
    return std::chrono::duration_cast<std::chrono::milliseconds>((now_() - start_) * to_one);
  }

  StatusLine status_;
  std::function<std::chrono::steady_clock::time_point()> now_;
  std::chrono::steady_clock::time_point start_;
};

ExitCode check_kernel_file(const CheckOptions& options, const Context& context) {
  if (!options.block.empty() || !options.arguments.empty() || !options.entry.empty())
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' says itself what is launched; leave --entry, --block and --arg "
                                   "out",
                                   printable(options.file)));
  const KernelFamily& family = kernel_file_family(options.file).family();
  const std::string size =
      options.size.empty() ? std::string(kCheckedSizes[family.extent_names().size() - 1]) : options.size;
  const std::vector<Problem> problems = list_problems({.family = options.file, .sizes = size});
  if (problems.size() != 1)
    throw CommandError(ExitCode::usage, fmt::format("--size {} names {} sizes; one is checked", size, problems.size()));
  const std::chrono::milliseconds deadline = parse_duration(options.deadline);
  KernelFileCheck check{.file = options.file, .problem = problems.front(), .orders = orders_of(options)};
  check.checks = of_kernel_file(family, [&] {
    CheckProgress progress(context);
    return check_policies(check.problem, check.orders, deadline, options.architecture, std::ref(progress));
  });
  for (PolicyCheck& each : check.checks.run) each.report.failure = with_typed_paths(family, each.report.failure);
  if (check.checks.run.empty())
    throw CommandError(ExitCode::input, fmt::format("'{}' for {}: no policy is valid on the host device: {}",
                                                    printable(options.file), problem_label(check.problem),
                                                    reasons_text(check.checks.invalid)));
  if (options.json) print_json(policies_json(check, options), context);
  else print_policies(check, options, context.out);
  return exit_code(check.checks.run);
}

}  // namespace

void set_up_check(CLI::App& app, CheckOptions& options) {
  CLI::App* sub = app.add_subcommand("check");
  file_name(sub->add_option("file", options.file));
  sub->add_option("--entry", options.entry);
  one_of(sub->add_option("--arch", options.architecture), known_architectures);
  sub->add_option("--grid", options.grid);
  sub->add_option("--block", options.block);
  sub->add_option("--smem", options.smem);
  one_each(sub->add_option("--arg", options.arguments));
  sub->add_option("--size", options.size)->take_last();
  one_of(one_each(sub->add_option("--order", options.orders)), [] {
    Words words;
    for (const HostOrder& each : default_host_orders()) words.push_back(to_string(each));
    return words;
  });
  sub->add_option("--deadline", options.deadline)->take_last();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_check(const CheckOptions& options, const Context& context) {
  if (options.file.empty())
    throw CommandError(ExitCode::usage, "no file was given; hone check wants a .cu file, or a kernel file (.toml)");
  if (names_kernel_file(options.file)) return check_kernel_file(options, context);
  if (!options.size.empty())
    throw CommandError(ExitCode::usage, "--size is for kernel files (.toml); a .cu file takes --grid and --block");
  if (options.block.empty() && !options.arguments.empty())
    throw CommandError(ExitCode::usage, "--arg without --block: how many threads shall run?");
  const Launch launch = launch_of(options);
  const Unit unit = read_one_kernel(options.file, options.entry);
  const HostCheck check = host_check(unit, options, launch);

  const GpuCheck gpu = check_for_gpu(unit, options);
  nlohmann::ordered_json json{
      {"file", options.file}, {"kernel", unit.entries.front()}, {"gpu", gpu_json(gpu, options, launch)}};
  if (!options.json) {
    context.out << fmt::format("{}: {}\n\n", printable(options.file), printable(unit.entries.front()));
    print_gpu(gpu, options, launch, context.out);
  }
  std::optional<HostCheckReport> report;
  if (!options.block.empty()) report = run_on_host(check);
  if (options.json) {
    json["host"] = report ? host_json(*report, check) : nlohmann::ordered_json(nullptr);
    print_json(json, context);
  } else if (report) {
    print_host(*report, check, options, context.out);
  } else {
    context.out << "Host device: not run; give --block, --grid and an --arg for each parameter\n";
  }
  return !report || report->ok() ? ExitCode::ok : ExitCode::failed;
}

}  // namespace hone::tuner
