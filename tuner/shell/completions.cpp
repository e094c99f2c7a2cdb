#include "tuner/shell/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hone::tuner {
namespace {

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Calls visit(command) for hone and each of its commands, parents first.
template <class Visit>
void for_each_command(const CompletedCommand& command, const Visit& visit) {
  visit(command);
  for (const CompletedCommand& sub : command.subcommands) for_each_command(sub, visit);
}

std::vector<std::string> names_of(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const CompletedCommand& sub : command.subcommands) names.push_back(sub.path.back());
  for (const CompletedOption& option : command.options) names.push_back(option.name);
  return names;
}

// --- bash ---

/// A line that sets COMPREPLY to what a value may be.
std::string bash_value(const ValueSet& value) {
  switch (value.kind) {
    case ValueKind::words:
      return fmt::format("_hone_words '{}'", joined(value.words));
    case ValueKind::list:
      return fmt::format("_hone_list '{}'", joined(value.words));
    case ValueKind::file:
      return "_hone_files";
    default:
      return ":";
  }
}

std::string bash_command(const CompletedCommand& command) {
  std::string text = fmt::format("    '{}')\n      case $prev in\n", joined(command.path));
  for (const CompletedOption& option : command.options)
    if (option.value.kind != ValueKind::none)
      text += fmt::format("        {}) {}; return ;;\n", option.name, bash_value(option.value));
  text += "      esac\n";
  if (command.has_arguments) text += fmt::format("      [[ $cur == -* ]] || {}\n", bash_value(command.arguments));
  return text + fmt::format("      _hone_words '{}' ;;\n", joined(names_of(command)));
}

std::string bash_script(const CompletedCommand& hone) {
  std::string paths;
  for_each_command(hone, [&](const CompletedCommand& command) {
    if (!command.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", joined(command.path));
  });
  std::string text = R"(# Completions of hone for bash, made by: hone shell bash
_hone_words() { COMPREPLY+=($(compgen -W "$1" -- "$cur")); }
_hone_files() {
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen -f -- "$cur"))
}
_hone_list() {
  local before=
  [[ $cur == *,* ]] && before=${cur%,*},
  compopt -o nospace 2>/dev/null
  COMPREPLY+=($(compgen -P "$before" -W "$1" -- "${cur##*,}"))
}
_hone() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word="${command:+$command }${COMP_WORDS[i]}"
    case $word in
      )" + paths + R"() command=$word ;;
    esac
  done
  case $command in
)";
  for_each_command(hone, [&](const CompletedCommand& command) { text += bash_command(command); });
  return text + "  esac\n}\ncomplete -F _hone hone\n";
}

// --- zsh ---

/// In a description or a word between single quotes of _arguments: brackets and colons have a meaning there.
std::string zsh_quoted(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      quoted.append("\\").push_back(c);
    else
      quoted += c;
  }
  return quoted;
}

std::string zsh_value(const ValueSet& value) {
  switch (value.kind) {
    case ValueKind::words:
      return fmt::format("({})", zsh_quoted(joined(value.words)));
    case ValueKind::list:
      return fmt::format("_values -s , value {}", zsh_quoted(joined(value.words)));
    case ValueKind::file:
      return "_files";
    default:
      return " ";
  }
}

std::string zsh_function(const CompletedCommand& command) {
  const std::string name = "_hone" + (command.path.empty() ? "" : fmt::format("_{}", fmt::join(command.path, "_")));
  std::string text = fmt::format("{}() {{\n  local state line\n", name);
  text += "  _arguments -C";
  for (const CompletedOption& option : command.options)
    text += fmt::format(" \\\n    '{}[{}]{}'", option.name, zsh_quoted(option.summary),
                        option.value.kind == ValueKind::none ? "" : ":value:" + zsh_value(option.value));
  if (!command.subcommands.empty())
    text += " \\\n    '1: :->command' \\\n    '*:: :->arguments'";
  else if (command.has_arguments)
    text += fmt::format(" \\\n    '*:argument:{}'", zsh_value(command.arguments));
  text += "\n";
  if (!command.subcommands.empty()) {
    text += "  case $state in\n    command)\n      local -a commands=(";
    for (const CompletedCommand& sub : command.subcommands)
      text += fmt::format("\n        '{}:{}'", sub.path.back(), zsh_quoted(sub.summary));
    text += ")\n      _describe command commands ;;\n    arguments)\n      case $line[1] in\n";
    for (const CompletedCommand& sub : command.subcommands)
      text += fmt::format("        {}) _hone_{} ;;\n", sub.path.back(), fmt::join(sub.path, "_"));
    text += "      esac ;;\n  esac\n";
  }
  return text + "}\n";
}

std::string zsh_script(const CompletedCommand& hone) {
  std::string text = "#compdef hone\n# Completions of hone for zsh, made by: hone shell zsh\n";
  for_each_command(hone, [&](const CompletedCommand& command) { text += zsh_function(command); });
  // Loaded from fpath, the file is the function's body; sourced, it only defines functions.
  return text + "if [ \"$funcstack[1]\" = _hone ]; then _hone \"$@\"; else compdef _hone hone; fi\n";
}

// --- fish ---

std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted.append(c == '\'' || c == '\\' ? "\\" : "").push_back(c);
  return quoted + "'";
}

/// The condition under which the words so far name the command and none below it.
std::string fish_condition(const CompletedCommand& command) {
  std::string condition;
  for (const std::string& word : command.path)
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
  if (command.subcommands.empty()) return condition;
  std::vector<std::string> below;
  for (const CompletedCommand& sub : command.subcommands) below.push_back(sub.path.back());
  return fmt::format("{}not __fish_seen_subcommand_from {}", condition.empty() ? "" : condition + "; and ",
                     joined(below));
}

std::string fish_value(const ValueSet& value) {
  switch (value.kind) {
    case ValueKind::none:
      return "";
    case ValueKind::words:
      return fmt::format(" -x -a {}", fish_quoted(joined(value.words)));
    case ValueKind::list:
      return fmt::format(" -x -a '(__fish_complete_list , \"printf %s\\n {}\")'", joined(value.words));
    case ValueKind::file:
      return " -r -F";
    default:
      return " -x";
  }
}

std::string fish_script(const CompletedCommand& hone) {
  std::string text = "# Completions of hone for fish, made by: hone shell fish\ncomplete -c hone -f\n";
  for_each_command(hone, [&](const CompletedCommand& command) {
    const std::string when = "complete -c hone -n " + fish_quoted(fish_condition(command));
    for (const CompletedCommand& sub : command.subcommands)
      text += fmt::format("{} -a {} -d {}\n", when, sub.path.back(), fish_quoted(sub.summary));
    for (const CompletedOption& option : command.options) {
      const bool is_long = option.name.starts_with("--");
      text += fmt::format("{} {} {}{}{}\n", when, is_long ? "-l" : "-s", option.name.substr(is_long ? 2 : 1),
                          fish_value(option.value), option.summary.empty() ? "" : " -d " + fish_quoted(option.summary));
    }
    if (command.has_arguments && command.arguments.kind == ValueKind::file) text += when + " -F\n";
    if (command.has_arguments && command.arguments.kind == ValueKind::words)
      text += fmt::format("{} -a {}\n", when, fish_quoted(joined(command.arguments.words)));
  });
  return text;
}

}  // namespace

std::string completions_for(std::string_view shell, const CompletedCommand& hone) {
  if (shell == "bash") return bash_script(hone);
  return shell == "zsh" ? zsh_script(hone) : fish_script(hone);
}

}  // namespace hone::tuner
