#include "tuner/kernel_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>

#include "tuner/command_error.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (file && fs::is_regular_file(path)) return {std::istreambuf_iterator<char>(file), {}};
  const std::string why = fs::is_directory(path) ? "it is a directory" : std::strerror(errno);
  throw Error(ErrorCode::io_failed, fmt::format("cannot read the kernel file '{}': {}", printable(path.string()), why));
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

/// Adds what `text` includes with quotes, and what that includes.
void add_headers(const fs::path& folder, const std::string& text, std::vector<SourceFile>& headers) {
  static const std::regex kInclude("#[ \t]*include[ \t]*\"([^\"]+)\"");
  for (std::sregex_iterator at(text.begin(), text.end(), kInclude), end; at != end; ++at) {
    const std::string name = (*at)[1];
    const bool is_known = std::any_of(headers.begin(), headers.end(), [&](const auto& h) { return h.name == name; });
    const bool leaves = fs::path(name).is_absolute() || name.find("..") != std::string::npos;
    if (is_known || leaves || !fs::is_regular_file(folder / name)) continue;  // the compiler says what is missing
    headers.push_back({name, read_text(folder / name)});
    const std::string included = headers.back().text;
    add_headers(folder, included, headers);
  }
}

}  // namespace

std::vector<std::string> global_functions(std::string_view source) {
  static const std::regex kFunction(R"(__global__([^;{}()]|__launch_bounds__\s*\([^)]*\))*?\b(\w+)\s*\()");
  const std::string text = without_comments(source);
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kFunction), end; at != end; ++at) {
    if (const std::string name = (*at)[2]; name != "__launch_bounds__") names.push_back(name);
  }
  return names;
}

Unit read_kernel_file(const fs::path& path, const std::string& entry) {
  Unit unit{.name = path.filename().string(), .source = read_text(path), .headers = {}, .entries = {entry}};
  add_headers(path.parent_path(), unit.source, unit.headers);
  const std::vector<std::string> known = global_functions(unit.source);
  if (entry.empty() && known.size() == 1) unit.entries = known;
  else if (entry.empty()) {
    throw CommandError(ExitCode::usage, known.empty()
                                            ? fmt::format("'{}' has no function marked __global__; name the kernel with "
                                                          "--entry", printable(path.string()))
                                            : fmt::format("'{}' has several kernels; choose one with --entry: {}",
                                                          printable(path.string()), fmt::join(known, ", ")));
  }
  return unit;
}

}  // namespace hone::tuner
