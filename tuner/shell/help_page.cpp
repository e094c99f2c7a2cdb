#include "tuner/shell/help_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace hone::tuner {
namespace {

/// A heading has at most so many characters; a longer first line that ends with a colon is a sentence.
constexpr std::size_t kLongestHeading = 30;

std::vector<std::string> lines_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_indented(const std::string& line) { return line.starts_with(' '); }

/// The heading that the line at `at` is, or begins with: "Problems: every combination …" is one where indented lines
/// follow its paragraph. "": none.
std::string heading_at(const std::vector<std::string>& lines, std::size_t at) {
  const std::string& line = lines[at];
  const std::size_t colon = line.find(':');
  const bool begins_paragraph = at > 0 && lines[at - 1].empty() && !line.empty() && !is_indented(line);
  if (!begins_paragraph || colon == std::string::npos || colon > kLongestHeading) return "";
  std::size_t next = at;
  while (next < lines.size() && !lines[next].empty() && !is_indented(lines[next])) ++next;
  const bool is_followed = next < lines.size() && is_indented(lines[next]);
  return is_followed && lines[next - 1].ends_with(':') ? line.substr(0, colon) : "";
}

/// For a line of roff: no character is a command.
std::string escaped(std::string_view line, bool is_literal) {
  std::string text;
  for (const char c : line) {
    if (c == '\\')
      text += "\\e";
    else if (c == '-' && is_literal)
      text += "\\-";
    else
      text += c;
  }
  if (text.starts_with('.') || text.starts_with('\'')) text.insert(0, "\\&");
  return text;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

}  // namespace

HelpPage parse_help(std::string_view text) {
  const std::vector<std::string> lines = lines_of(text);
  HelpPage page;
  const std::string& first = lines.at(0);
  page.command = first.substr(0, first.find(": "));
  page.summary = first.substr(first.find(": ") + 2);
  if (page.summary.ends_with('.')) page.summary.pop_back();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].starts_with("Usage: ")) {
      page.usage = lines[i].substr(7);
      for (; i + 1 < lines.size() && is_indented(lines[i + 1]); ++i)
        page.usage += "\n" + lines[i + 1].substr(lines[i + 1].find_first_not_of(' '));
      continue;
    }
    if (const std::string heading = heading_at(lines, i); !heading.empty()) {
      page.sections.push_back({heading, {}});
      const std::string rest = lines[i].substr(heading.size() + 1);
      if (const std::size_t begin = rest.find_first_not_of(' '); begin != std::string::npos)
        page.sections.back().lines.push_back(rest.substr(begin));
      continue;
    }
    const bool is_new_paragraph = !lines[i].empty() && !is_indented(lines[i]) && lines[i - 1].empty();
    const bool is_under_heading = !page.sections.empty() && !page.sections.back().heading.empty();
    if (page.sections.empty() || (is_new_paragraph && is_under_heading)) page.sections.push_back({"", {}});
    page.sections.back().lines.push_back(lines[i]);
  }
  return page;
}

std::string option_summary(std::string_view text, std::string_view option) {
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (!line.starts_with("  -")) continue;
    const std::size_t at = line.find(option);
    const std::size_t behind = at + option.size();
    if (at == std::string::npos || (behind < line.size() && line[behind] != ' ' && line[behind] != ',')) continue;
    const std::size_t gap = line.find("  ", behind);
    std::string words = gap == std::string::npos ? "" : line.substr(line.find_first_not_of(' ', gap));
    for (++i; i < lines.size() && lines[i].starts_with("     "); ++i)
      words.append(words.empty() ? "" : " ").append(lines[i].substr(lines[i].find_first_not_of(' ')));
    return words.substr(0, std::min({words.find(". "), words.find("; "), words.find(" ("), words.find(": ")}));
  }
  return "";
}

std::string man_page(const HelpPage& page, std::string_view version) {
  std::string name = page.command;
  std::replace(name.begin(), name.end(), ' ', '-');
  std::string roff =
      fmt::format(".TH \"{}\" 1 \"\" \"hone {}\" \"Hone\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n{}\n.fi\n",
                  upper(name), version, escaped(name, true), escaped(page.summary, false), escaped(page.usage, true));
  bool is_described = false;
  for (const HelpSection& section : page.sections) {
    if (!section.heading.empty())
      roff += fmt::format(".SH \"{}\"\n", upper(section.heading));
    else if (!is_described)
      roff += ".SH DESCRIPTION\n";
    is_described = true;
    bool is_literal = false;
    for (const std::string& line : section.lines) {
      if (is_indented(line) != is_literal && !line.empty()) {
        is_literal = !is_literal;
        roff += is_literal ? ".nf\n" : ".fi\n";
      }
      if (line.empty())
        roff += is_literal ? "\n" : ".PP\n";
      else
        roff += escaped(line, is_literal) + "\n";
    }
    if (is_literal) roff += ".fi\n";
  }
  return roff;
}

}  // namespace hone::tuner
