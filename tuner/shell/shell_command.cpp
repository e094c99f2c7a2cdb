#include "tuner/shell/shell_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <string_view>

#include <hone/dtype.h>
#include <hone/kernel_family.h>
#include <hone/sdk/family_table.h>
#include <hone/sdk/known_gpus.h>

#include "tuner/text/help.h"
#include "tuner/shell/completions.h"
#include "tuner/shell/help_page.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using Words = std::vector<std::string>;

Words family_names() {
  Words names;
  for (const FamilyRow& row : built_in_families()) names.emplace_back(row.family().name());
  return names;
}

Words operation_names() {
  Words names;
  for (const FamilyRow& row : built_in_families())
    for (const std::string_view operation : row.family().operations())
      if (std::find(names.begin(), names.end(), operation) == names.end()) names.emplace_back(operation);
  return names;
}

Words dtype_names() {
  Words names;
  for (const auto& row : kDTypes) names.emplace_back(row.name);
  return names;
}

Words gpu_names() {
  Words names{"auto"};
  for (const KnownGpu& gpu : known_gpus()) names.emplace_back(gpu.name);
  return names;
}

/// The values of options and arguments, which mean the same in all commands.
struct KnownValue {
  std::string_view name;
  ValueKind kind;
  Words (*words)();
};

constexpr std::array<KnownValue, 26> kKnownValues{{
    {"FAMILY", ValueKind::words, family_names},
    {"--family", ValueKind::words, family_names},
    {"--op", ValueKind::list, operation_names},
    {"--dtype", ValueKind::list, dtype_names},
    {"--accumulator", ValueKind::words, dtype_names},
    {"--result", ValueKind::words, dtype_names},
    {"--align", ValueKind::words, [] { return Words{"1", "2", "4", "8", "16", "all"}; }},
    {"--context", ValueKind::words,
     [] {
       return Words{"stream", "graph", "both"};
     }},
    {"--nan", ValueKind::words,
     [] {
       return Words{"propagate", "ignore"};
     }},
    {"--numerics", ValueKind::words,
     [] {
       return Words{"fast", "reproducible"};
     }},
    {"--preset", ValueKind::words,
     [] {
       return Words{"quick", "standard", "full"};
     }},
    {"--device", ValueKind::words,
     [] {
       return Words{"auto", "all", "cuda", "host"};
     }},
    {"--gpu", ValueKind::words, gpu_names},
    {"--arch", ValueKind::words, known_architectures},
    {"--color", ValueKind::words,
     [] {
       return Words{"auto", "always", "never"};
     }},
    {"--on-miss", ValueKind::words,
     [] {
       return Words{"tune", "heuristic", "error"};
     }},
    {"--order", ValueKind::words,
     [] {
       return Words{"forward", "reverse", "random"};
     }},
    {"what", ValueKind::words,
     [] {
       return Words{"bash", "zsh", "fish", "man"};
     }},
    {"--cache", ValueKind::file, nullptr},
    {"--compare", ValueKind::file, nullptr},
    {"--file", ValueKind::file, nullptr},
    {"--output", ValueKind::file, nullptr},
    {"file", ValueKind::file, nullptr},
    {"FILE", ValueKind::file, nullptr},
    {"FILES", ValueKind::file, nullptr},
    {"kernel", ValueKind::file, nullptr},
}};

ValueSet value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {.kind = ValueKind::none};
  Words names = option.get_lnames();
  for (std::string& name : names) name.insert(0, "--");
  if (names.empty()) names.push_back(option.get_name());
  for (const KnownValue& known : kKnownValues)
    if (std::find(names.begin(), names.end(), known.name) != names.end())
      return {known.kind, known.words ? known.words() : Words{}};
  return {.kind = ValueKind::other};
}

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
      if (!command.has_arguments) command.arguments = value_of(*option);
      command.has_arguments = true;
    }
    Words names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : names)
      command.options.push_back({name, option_summary(help, name), value_of(*option)});
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
  sub->add_option("what", options.what);
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
