#include "tests/layering/include_check.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hone::layering {

namespace fs = std::filesystem;

namespace {

struct Include {
  int line = 0;
  bool quoted = false;
  std::string name;
};

bool is_source(const fs::path& file) {
  constexpr std::string_view kExtensions[] = {".h", ".cpp", ".cuh", ".cu"};
  return std::ranges::find(kExtensions, file.extension().string()) != std::end(kExtensions);
}

std::vector<Include> read_includes(const fs::path& file) {
  static const std::regex directive(R"(\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::vector<Include> includes;
  std::ifstream stream(file);
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    std::smatch match;
    if (std::regex_match(text, match, directive)) includes.push_back({line, match[1] == "\"", match[2]});
  }
  return includes;
}

/// The file of ours that an include in `from` means, relative to the tree; nullopt for a foreign header.
std::optional<std::string> resolve(const fs::path& tree, const fs::path& from, const Include& include) {
  const fs::path candidates[] = {from.parent_path() / include.name, include.name};
  if (include.quoted) {
    for (const fs::path& candidate : candidates) {
      const fs::path path = candidate.lexically_normal();
      if (fs::exists(tree / path)) return path.generic_string();
    }
  }
  if (include.name.starts_with("hone/")) return "runtime/include/" + include.name;
  return std::nullopt;
}

const FolderRule* rule_of(const IncludeRules& rules, std::string_view path) {
  const FolderRule* longest = nullptr;
  for (const FolderRule& rule : rules.folders) {
    if (path.starts_with(rule.folder) && (!longest || rule.folder.size() > longest->folder.size())) longest = &rule;
  }
  return longest;
}

bool begins_with_any(std::string_view text, const std::vector<std::string_view>& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

/// The folder right below that of the rule; "" of files that lie in the rule's own.
std::string_view part_below(const FolderRule& rule, std::string_view path) {
  const std::string_view rest = path.substr(rule.folder.size());
  return rest.substr(0, rest.find('/') == std::string_view::npos ? 0 : rest.find('/'));
}

/// Why our file `path` under `rule` must not include our file `target`; "" when it may.
std::string refuse_ours(const IncludeRules& rules, const FolderRule& rule, std::string_view path,
                        std::string_view target) {
  const FolderRule* const other = rule_of(rules, target);
  const bool is_shared =
      other && other->each_below && path.starts_with(other->folder) && part_below(*other, target).empty();
  const bool is_own = other == &rule && (!rule.each_below || part_below(rule, path) == part_below(rule, target));
  if (is_shared || is_own || begins_with_any(target, rule.may_include)) return "";
  return fmt::format("of ours, {} may include itself and [{}]", rule.folder, fmt::join(rule.may_include, ", "));
}

/// Why a file under `rule` must not include the foreign `header`; "" when it may.
std::string refuse_foreign(const IncludeRules& rules, const FolderRule& rule, std::string_view header) {
  if (header.find_first_of("./") == std::string_view::npos) {
    return rule.standard_library ? "" : fmt::format("{} uses no standard library", rule.folder);
  }
  for (const LibraryRule& library : rules.libraries) {
    if (!begins_with_any(header, library.headers)) continue;
    if (begins_with_any(rule.folder, library.folders)) {
      return rule.standard_library ? "" : fmt::format("{} uses no libraries", rule.folder);
    }
    return fmt::format("only [{}] may", fmt::join(library.folders, ", "));
  }
  return "no rule knows this header";
}

void check_file(const fs::path& tree, const fs::path& file, const IncludeRules& rules,
                std::vector<std::string>& violations) {
  const std::string path = file.generic_string();
  const FolderRule* rule = rule_of(rules, path);
  if (!rule) {
    violations.push_back(fmt::format("{}: no rule knows its folder", path));
    return;
  }
  for (const Include& include : read_includes(tree / file)) {
    const std::optional<std::string> ours = resolve(tree, file, include);
    std::string refusal = ours ? refuse_ours(rules, *rule, path, *ours) : refuse_foreign(rules, *rule, include.name);
    if (!ours && include.quoted) refusal = "no such file is there";
    if (!refusal.empty()) {
      violations.push_back(fmt::format("{}:{}: includes {}: {}", path, include.line, include.name, refusal));
    }
  }
}

/// The includes that lead from `file` to `header`, both included; empty where none do.
std::vector<std::string> path_between(const fs::path& tree, const std::string& file, std::string_view header,
                                      std::set<std::string>& seen) {
  if (file == header) return {file};
  if (!seen.insert(file).second) return {};
  for (const Include& include : read_includes(tree / file)) {
    const std::optional<std::string> ours = resolve(tree, file, include);
    if (!ours || !fs::exists(tree / *ours)) continue;
    std::vector<std::string> path = path_between(tree, *ours, header, seen);
    if (path.empty()) continue;
    path.insert(path.begin(), file);
    return path;
  }
  return {};
}

void check_hidden(const fs::path& tree, const fs::path& file, const IncludeRules& rules,
                  std::vector<std::string>& violations) {
  const std::string path = file.generic_string();
  for (const HiddenRule& rule : rules.hidden) {
    if (!begins_with_any(path, rule.from)) continue;
    std::set<std::string> seen;
    const std::vector<std::string> chain = path_between(tree, path, rule.header, seen);
    if (!chain.empty())
      violations.push_back(fmt::format("{}: must not see {}", fmt::join(chain, " includes "), rule.header));
  }
}

/// Depth first from `rule`; true when `path` has become a cycle.
bool extend_to_cycle(const IncludeRules& rules, const FolderRule& rule, std::vector<std::string_view>& path) {
  if (const auto seen = std::ranges::find(path, rule.folder); seen != path.end()) {
    path.erase(path.begin(), seen);
    return true;
  }
  path.push_back(rule.folder);
  for (const FolderRule& other : rules.folders) {
    const bool allowed = std::ranges::any_of(rule.may_include, [&](std::string_view target) {
      return other.folder.starts_with(target) || rule_of(rules, target) == &other;
    });
    if (allowed && &other != &rule && extend_to_cycle(rules, other, path)) return true;
  }
  path.pop_back();
  return false;
}

}  // namespace

std::vector<std::string> find_violations(const fs::path& tree, const IncludeRules& rules) {
  std::vector<fs::path> files;
  for (const std::string_view root : rules.roots) {
    if (!fs::exists(tree / root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(tree / root)) {
      if (entry.is_regular_file() && is_source(entry.path())) files.push_back(entry.path().lexically_relative(tree));
    }
  }
  std::ranges::sort(files);
  std::vector<std::string> violations;
  for (const fs::path& file : files) {
    check_file(tree, file, rules, violations);
    check_hidden(tree, file, rules, violations);
  }
  return violations;
}

std::vector<std::string_view> find_allowed_cycle(const IncludeRules& rules) {
  std::vector<std::string_view> path;
  for (const FolderRule& rule : rules.folders) {
    if (extend_to_cycle(rules, rule, path)) return path;
  }
  return {};
}

}  // namespace hone::layering
