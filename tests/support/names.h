// Names(): what a message has to say, whatever words it says it in.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace hone::test {

/// True if `text` has `name`, and no number of it is a part of a longer one: "12" is not in "1200", "4" not in "4.5".
inline bool has_name(std::string_view text, std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::string_view before = text.substr(0, at), after = text.substr(at + name.size());
    const bool begins = !is_digit(name.front()) || before.empty() ||
                        !(is_digit(before.back()) ||
                          (before.ends_with('.') && before.size() > 1 && is_digit(before[before.size() - 2])));
    const bool ends = !is_digit(name.back()) || after.empty() ||
                      !(is_digit(after.front()) || (after.starts_with('.') && after.size() > 1 && is_digit(after[1])));
    if (begins && ends) return true;
  }
  return false;
}

inline std::string missing_names(std::string_view text, const std::vector<std::string>& names) {
  std::string missing;
  for (const std::string& name : names)
    if (name.empty() || !has_name(text, name)) missing += (missing.empty() ? "'" : ", '") + name + "'";
  return missing;
}

MATCHER_P(NamesAll, names, "names each of " + testing::PrintToString(names)) {
  const std::string missing = missing_names(arg, names);
  if (!missing.empty()) *result_listener << "does not name " << missing;
  return missing.empty() && !names.empty();
}

MATCHER_P(HasLineThatNamesAll, names, "has a line that names each of " + testing::PrintToString(names)) {
  std::string_view rest(arg);
  while (!names.empty() && !rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (missing_names(line, names).empty()) return true;
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return false;
}

/// A text that has every one of the numbers, names and words.
template <class... Words>
auto Names(const Words&... words) {
  return NamesAll(std::vector<std::string>{std::string(words)...});
}

/// A text with a line that has every one of them: a row of a table, a thread and where it waits.
template <class... Words>
auto HasLine(const Words&... words) {
  return HasLineThatNamesAll(std::vector<std::string>{std::string(words)...});
}

}  // namespace hone::test
