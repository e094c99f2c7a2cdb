#include "tuner/command.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>
#include <vector>

#include "cache/store.h"
#include "tuner/array/reduce_command.h"
#include "tuner/array/run_command.h"
#include "tuner/array/softmax_command.h"
#include "tuner/array/transpose_command.h"
#include "tuner/cache/cache_command.h"
#include "tuner/check/check_command.h"
#include "tuner/devices/devices_command.h"
#include "tuner/emit/emit_command.h"
#include "tuner/explain/explain_command.h"
#include "tuner/text/help.h"
#include "tuner/inspect/inspect_command.h"
#include "tuner/occupancy/occupancy_command.h"
#include "tuner/plan/plan_command.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/report/report_command.h"
#include "tuner/shell/shell_command.h"
#include "tuner/stats/stats_command.h"
#include "tuner/transfer/transfer_command.h"
#include "tuner/text/color.h"
#include "tuner/text/command_error.h"
#include "tuner/text/option_values.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"
#include "tuner/tune/tune_command.h"

namespace hone::tuner {
namespace {

/// "cache list" for the command of that name, "hone" for the whole.
std::string command_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  if (app.get_parent()->get_parent() == nullptr) return app.get_name();
  return command_name(*app.get_parent()) + " " + app.get_name();
}

std::string help_text(const CLI::App* app, std::string, CLI::AppFormatMode) {
  std::string file = command_name(*app) + ".txt";
  std::replace(file.begin(), file.end(), ' ', '_');
  for (const SourceFile& text : embedded::help_texts()) {
    if (text.name == file) return text.text;
  }
  return {};
}

/// The command that was typed, as far as its words are known.
const CLI::App& chosen_part(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_part(*chosen.front());
}

ExitCode exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:
      return ExitCode::usage;
    case ErrorCode::device_failed:
    case ErrorCode::device_lost:
    case ErrorCode::out_of_memory:
      return ExitCode::device;
    case ErrorCode::io_failed:
      return ExitCode::input;
    case ErrorCode::cache_failed:
      return ExitCode::cache;
    case ErrorCode::unsupported:
    case ErrorCode::compile_failed:
    case ErrorCode::not_tuned:
      return ExitCode::not_tuned;
  }
  return ExitCode::failed;
}

/// "hone cache list", or "hone" where no command was recognised.
std::string command_line_of(const CLI::App& app) {
  const CLI::App& part = chosen_part(app);
  return &part == &app ? "hone" : "hone " + command_name(part);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return did_you_mean(word, views);
}

/// "commands are devices, tune and inspect".
std::string commands_text(const CLI::App& part) {
  const std::vector<std::string> names = subcommand_names(part);
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return fmt::format("commands are {} and {}", fmt::join(first, ", "), names.back());
}

/// Arguments that belong to nothing: the first is named, with what it may have been meant to be.
void refuse_extras(const CLI::App& part) {
  const std::vector<std::string> extras = part.remaining();
  if (extras.empty()) return;
  const std::string& first = extras.front();
  const bool is_option = first.starts_with('-') && first.size() > 1;
  std::string what;
  if (is_option) {
    const std::string option = first.substr(0, first.find('='));
    what = fmt::format("unknown option '{}'{}", printable(option), suggestion(option, option_names(part)));
  } else if (const std::vector<std::string> names = subcommand_names(part); !names.empty()) {
    what = fmt::format("unknown command '{}'{}; {}", printable(first), suggestion(first, names), commands_text(part));
  } else {
    what = fmt::format("unexpected argument '{}'", printable(first));
  }
  throw CommandError(ExitCode::usage, what);
}

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

/// CLI11 says in its own words that an option lacks its value, that a flag was given one, or that two options exclude
/// each other; this says it in ours. Its messages begin with the option's name, with or without its dashes.
std::string in_our_words(const CLI::App& app, const CLI::ParseError& error) {
  constexpr std::string_view kExcludes = " excludes ";
  if (const std::string_view both = error.what(); dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const std::size_t between = both.find(kExcludes);
    return fmt::format("{} and {} exclude each other; give one of them", both.substr(0, between),
                       both.substr(between + kExcludes.size()));
  }
  const std::string_view message = without_dashes(error.what());
  const CLI::App& part = chosen_part(app);
  const CLI::Option* named = nullptr;
  for (const CLI::Option* option : part.get_options()) {
    const std::string name = option->get_name();
    // The longest match: --op is the beginning of another option's name.
    if (message.starts_with(without_dashes(name)) && (named == nullptr || name.size() > named->get_name().size()))
      named = option;
  }
  if (named == nullptr) return error.what();
  if (named->get_items_expected_max() == 0) return fmt::format("{} takes no value", named->get_name());
  return fmt::format("{} needs a value", named->get_name());
}

constexpr std::array<std::string_view, 3> kColorWords{"auto", "always", "never"};

class Command {
 public:
  Command() {
    app_.name("hone");
    app_.formatter_fn(help_text);
    app_.set_help_flag("-h,--help");
    app_.set_version_flag("--version", "hone " HONE_VERSION);
    app_.require_subcommand(0, 1);
    set_up_devices(app_, devices_);
    set_up_tune(app_, tune_);
    set_up_inspect(app_, inspect_);
    set_up_explain(app_, explain_);
    set_up_report(app_, report_);
    set_up_occupancy(app_, occupancy_);
    set_up_plan(app_, plan_);
    set_up_transfer(app_, transfer_);
    set_up_reduce(app_, reduce_);
    set_up_softmax(app_, softmax_);
    set_up_transpose(app_, transpose_);
    set_up_run(app_, run_);
    set_up_check(app_, check_);
    set_up_emit(app_, emit_);
    set_up_cache(app_, cache_);
    set_up_stats(app_, stats_);
    set_up_shell(app_, shell_);
    set_up_common(app_);
  }

  ExitCode run(std::vector<std::string> args, const Context& context) {
    if (!args.empty() && args.front() == "help") {
      args.erase(args.begin());
      args.push_back("--help");
    }
    if (std::find(args.begin(), args.end(), "") != args.end())
      throw CommandError(ExitCode::usage, "an argument is empty; was a shell variable not set?");
    std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
    try {
      app_.parse(std::move(args));
    } catch (const CLI::CallForHelp&) {
      context.out << app_.help();
      return ExitCode::ok;
    } catch (const CLI::CallForVersion& version) {
      context.out << version.what() << '\n';
      return ExitCode::ok;
    } catch (const CLI::ParseError& error) {
      throw CommandError(ExitCode::usage, in_our_words(app_, error));
    }
    choose_color(context);
    refuse_extras(app_);
    for (const CLI::App* part = &app_; !part->get_subcommands().empty();) {
      part = part->get_subcommands().front();
      refuse_extras(*part);
    }
    const CLI::App& chosen = chosen_part(app_);
    if (!subcommand_names(chosen).empty())
      throw CommandError(ExitCode::usage, "no command was given; " + commands_text(chosen));
    return run_chosen(command_name(chosen), context);
  }

  std::string help_hint() const { return fmt::format("Try: {} --help", command_line_of(app_)); }

 private:
  /// Adds what all commands have. Extras are allowed so that what is left over is named in our words.
  void set_up_common(CLI::App& part) {
    part.allow_extras();
    one_of(part.add_option("--color", color_)->take_last(), words_in(kColorWords));
    for (CLI::App* sub : part.get_subcommands([](CLI::App*) { return true; })) set_up_common(*sub);
  }

  void choose_color(const Context& context) const {
    if (std::find(kColorWords.begin(), kColorWords.end(), color_) == kColorWords.end())
      throw CommandError(ExitCode::usage,
                         fmt::format("--color: unknown '{}'{}; known are {}", printable(color_),
                                     did_you_mean(color_, kColorWords), fmt::join(kColorWords, ", ")));
    if (color_ == "auto") return;
    set_color(context.out, color_ == "always");
    set_color(context.err, color_ == "always");
  }

  ExitCode run_chosen(const std::string& name, const Context& context) {
    if (name == "devices") return run_devices(devices_, context);
    if (name == "tune") return run_tune(tune_, context);
    if (name == "inspect") return run_inspect(inspect_, context);
    if (name == "explain") return run_explain(explain_, context);
    if (name == "report") return run_report(report_, context);
    if (name == "occupancy") return run_occupancy(occupancy_, context);
    if (name == "plan") return run_plan(plan_, context);
    if (name == "transfer") return run_transfer(transfer_, context);
    if (name == "check") return run_check(check_, context);
    if (name == "run") return run_run(run_, context);
    if (name == "emit") return run_emit(emit_, context);
    if (name == "reduce") return run_reduce(reduce_, context);
    if (name == "softmax") return run_softmax(softmax_, context);
    if (name == "transpose") return run_transpose(transpose_, context);
    if (name == "stats") return run_stats(stats_, context);
    if (name == "shell") return run_shell(shell_, app_, context);
    return run_cache(name, cache_, context);
  }

  CLI::App app_;
  DevicesOptions devices_;
  TuneOptions tune_;
  InspectOptions inspect_;
  ExplainOptions explain_;
  ReportOptions report_;
  OccupancyOptions occupancy_;
  PlanOptions plan_;
  TransferOptions transfer_;
  ReduceOptions reduce_;
  SoftmaxOptions softmax_;
  ArrayOptions transpose_;
  RunOptions run_;
  CheckOptions check_;
  EmitOptions emit_;
  CacheOptions cache_;
  StatsOptions stats_;
  ShellOptions shell_;
  std::string color_ = "auto";
};

}  // namespace

int run_command(std::span<const std::string> args, std::ostream& out, std::ostream& err,
                const Environment& environment) {
  set_color(out, environment.may_color && environment.out_columns() > 0);
  set_color(err, environment.may_color && environment.err_columns() > 0);
  forget_kernel_files();
  const auto fail = [&](ExitCode code, std::string_view message) {
    err << paint("hone:", Paint::red) << ' ' << message << '\n';
    return static_cast<int>(code);
  };
  try {
    Command command;
    const auto fail_with_hint = [&](ExitCode code, std::string_view message) {
      fail(code, message);
      if (code == ExitCode::usage) err << command.help_hint() << '\n';
      return static_cast<int>(code);
    };
    try {
      return static_cast<int>(command.run({args.begin(), args.end()}, Context{out, err, environment}));
    } catch (const CommandError& error) {
      return fail_with_hint(error.code(), error.what());
    } catch (const Error& error) {
      return fail_with_hint(exit_code(error.code()), error.what());
    }
  } catch (const cache::StoreError& error) {
    return fail(ExitCode::cache, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::failed, "out of host memory");
  } catch (const std::exception& error) {
    return fail(ExitCode::failed, error.what());
  }
}

}  // namespace hone::tuner
