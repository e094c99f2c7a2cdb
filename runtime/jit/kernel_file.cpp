#include <hone/sdk/kernel_file.h>

#include <fmt/format.h>

#include <hone/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>

namespace hone {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (file && fs::is_regular_file(path)) return {std::istreambuf_iterator<char>(file), {}};
  const std::string why = fs::is_directory(path) ? "it is a directory" : std::strerror(errno);
  throw Error(ErrorCode::io_failed, fmt::format("cannot read the kernel file '{}': {}", path.string(), why));
}

/// Adds what `text` includes with quotes, and what that includes.
void add_headers(const fs::path& folder, const std::string& text, std::vector<SourceFile>& headers) {
  // Never destroyed, as the one below: a static object may read a kernel after main().
  static const auto& kInclude = *new std::regex("#[ \t]*include[ \t]*\"([^\"]+)\"");
  for (std::sregex_iterator at(text.begin(), text.end(), kInclude), end; at != end; ++at) {
    const std::string name = (*at)[1];
    const bool is_known = std::any_of(headers.begin(), headers.end(), [&](const auto& h) { return h.name == name; });
    const bool leaves = fs::path(name).is_absolute() || name.find("..") != std::string::npos;
    if (is_known || leaves || !fs::is_regular_file(folder / name)) continue;  // the compiler says what is missing
    const std::string included = read_text(folder / name);
    headers.push_back({name, with_place((folder / name).string(), included)});
    add_headers(folder, included, headers);
  }
}

}  // namespace

std::string with_place(std::string_view name, std::string_view text) {
  std::string literal;
  for (const char c : name) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
    literal += is_plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return fmt::format("#line 1 \"{}\"\n{}", literal, text);
}

std::string without_comments(std::string_view source) {
  std::string text;
  for (std::size_t at = 0; at < source.size();) {
    const bool is_line = source.substr(at, 2) == "//", is_block = source.substr(at, 2) == "/*";
    if (!is_line && !is_block) {
      text += source[at++];
      continue;
    }
    const std::size_t end = source.find(is_line ? "\n" : "*/", at + 2);
    at = end == std::string_view::npos ? source.size() : end + (is_line ? 0 : 2);
    text += ' ';
  }
  return text;
}

std::vector<std::string> global_functions(std::string_view source) {
  static const auto& kFunction = *new std::regex(
      R"(__global__([^;{}()]|__launch_bounds__\s*\([^)]*\))*?\b(?!__launch_bounds__)(\w+)\s*\()");
  const std::string text = without_comments(source);
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kFunction), end; at != end; ++at)
    if (std::find(names.begin(), names.end(), (*at)[2]) == names.end()) names.push_back((*at)[2]);
  return names;
}

Unit read_kernel_file(const fs::path& path, std::vector<std::string> entries) {
  const std::string text = read_text(path);
  if (entries.empty()) entries = global_functions(text);
  if (entries.empty()) {
    throw Error(ErrorCode::not_found, fmt::format("'{}' has no function marked __global__; name the kernel that its "
                                                  "macros make", path.string()));
  }
  Unit unit{.name = path.filename().string(),
            .source = with_place(path.string(), text),
            .headers = {},
            .entries = std::move(entries)};
  add_headers(path.parent_path(), text, unit.headers);
  return unit;
}

}  // namespace hone
