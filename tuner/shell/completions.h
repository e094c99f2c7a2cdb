// CommandTree and completions_for(): the commands with their options, and scripts for shells that complete them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

/// The kind of a value that stands behind an option, or in an argument's place.
enum class ValueKind {
  none,   ///< a flag
  words,  ///< one of ValueSet::words
  list,   ///< some of them, with commas between
  file,
  other,  ///< a number, a size, a name: nothing to offer
};

struct ValueSet {
  ValueKind kind = ValueKind::other;
  std::vector<std::string> words = {};
};

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
