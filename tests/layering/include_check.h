// IncludeRules and their check: which folder may include what.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hone::layering {

/// The folders whose headers the files of one folder may include.
struct FolderRule {
  std::string_view folder;                         ///< with a slash at its end; the longest match rules a file
  std::vector<std::string_view> may_include = {};  ///< folders, with all below them, or files; itself always
  bool standard_library = true;

  /// Each folder right below is one of its own, by the same rule: none includes another, and all may include the files
  /// that lie right in `folder`, which include no folder below.
  bool each_below = false;
};

/// Which folders may include the headers of one library.
struct LibraryRule {
  std::vector<std::string_view> headers;  ///< how the text between < and > begins
  std::vector<std::string_view> folders;
};

/// Headers that the files of some folders must not see, not even through other headers.
struct HiddenRule {
  std::string_view header;
  std::vector<std::string_view> from;  ///< folders
};

struct IncludeRules {
  std::vector<FolderRule> folders;
  std::vector<LibraryRule> libraries;
  std::vector<HiddenRule> hidden = {};
  std::vector<std::string_view> roots;  ///< the folders whose files are checked: each file needs a FolderRule
};

/// Checks the sources below `tree`. One line per violation: file, line, what it includes and what it may; for a hidden
/// header the chain of includes that leads to it.
std::vector<std::string> find_violations(const std::filesystem::path& tree, const IncludeRules& rules);

/// A cycle of folders that the rules would allow, each folder once; empty when there is none.
std::vector<std::string_view> find_allowed_cycle(const IncludeRules& rules);

}  // namespace hone::layering
