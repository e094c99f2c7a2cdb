#include "tuner/shell/shell_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <string_view>

#include <hone/kernel.h>

#include "tuner/text/help.h"
#include "tuner/shell/completions.h"
#include "tuner/shell/help_page.h"
#include "tuner/text/option_values.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

std::string_view help_of(const Words& path) {
  const std::string file = (path.empty() ? "hone" : fmt::format("{}", fmt::join(path, "_"))) + ".txt";
  for (const SourceFile& text : embedded::help_texts())
    if (text.name == file) return text.text;
  return "";
}

CompletedCommand tree_of(const CLI::App& app, Words path) {
  const std::string_view help = help_of(path);
  CompletedCommand command{.path = path, .summary = help.empty() ? "" : parse_help(help).summary};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && option->get_lnames().empty()) {
      if (!command.has_arguments) command.arguments = declared_values(*option);
      command.has_arguments = true;
    }
    Words names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : names)
      command.options.push_back({name, option_summary(help, name), declared_values(*option)});
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Words below = path;
    below.push_back(sub->get_name());
    command.subcommands.push_back(tree_of(*sub, std::move(below)));
  }
  return command;
}

}  // namespace

void set_up_shell(CLI::App& app, ShellOptions& options) {
  CLI::App* sub = app.add_subcommand("shell");
  one_of(sub->add_option("what", options.what), [] {
    Words words(std::begin(kShells), std::end(kShells));
    words.emplace_back("man");
    return words;
  });
  sub->add_option("COMMAND", options.command);
}

ExitCode run_shell(const ShellOptions& options, const CLI::App& hone, const Context& context) {
  if (options.what == "man") {
    const std::string_view help = help_of(options.command);
    if (help.empty())
      throw CommandError(ExitCode::usage, fmt::format("there is no command '{}' to print the manual page of",
                                                      printable(fmt::format("{}", fmt::join(options.command, " ")))));
    context.out << man_page(parse_help(help), HONE_VERSION);
    return ExitCode::ok;
  }
  if (std::find(std::begin(kShells), std::end(kShells), options.what) == std::end(kShells))
    throw CommandError(
        ExitCode::usage,
        options.what.empty()
            ? std::string("for which shell? Name bash, zsh or fish, or man for a manual page")
            : fmt::format("unknown shell '{}'{}; known are {}, and man for a manual page", printable(options.what),
                          did_you_mean(options.what, kShells), fmt::join(kShells, ", ")));
  if (!options.command.empty())
    throw CommandError(ExitCode::usage, fmt::format("unexpected argument '{}'", printable(options.command.front())));
  context.out << completions_for(options.what, tree_of(hone, {}));
  return ExitCode::ok;
}

}  // namespace hone::tuner
