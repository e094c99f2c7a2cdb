// CommandTree and completions_for(): the commands with their options, and scripts for shells that complete them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/text/option_values.h"

namespace hone::tuner {

struct CompletedOption {
  std::string name;     ///< "--size", "-o"
  std::string summary;  ///< in a few words; may be ""
  ValueSet value = {};
};

struct CompletedCommand {
  std::vector<std::string> path;  ///< {"cache", "list"}; {} for hone itself
  std::string summary;
  std::vector<CompletedOption> options = {};
  std::vector<CompletedCommand> subcommands = {};
  ValueSet arguments = {};  ///< its first positional argument
  bool has_arguments = false;
};

inline constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

/// The script for one of kShells.
std::string completions_for(std::string_view shell, const CompletedCommand& hone);

}  // namespace hone::tuner
