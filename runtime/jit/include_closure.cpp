#include "runtime/jit/include_closure.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "runtime/jit/embedded_sources.h"

namespace hone {
namespace {

/// Returns what the lines `#include "name"` of a text name. Comments and conditions are not understood: an include that
/// they take away is counted, too.
std::vector<std::string_view> quoted_includes(std::string_view text) {
  constexpr std::string_view kInclude = "#include \"";
  std::vector<std::string_view> names;
  for (std::size_t at = text.find(kInclude); at != std::string_view::npos; at = text.find(kInclude, at)) {
    at += kInclude.size();
    names.push_back(text.substr(at, text.find('"', at) - at));
  }
  return names;
}

std::optional<std::size_t> index_of(std::span<const SourceFile> files, std::string_view name) {
  const auto at = std::find_if(files.begin(), files.end(), [&](const SourceFile& file) { return file.name == name; });
  return at == files.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - files.begin()));
}

}  // namespace

std::vector<SourceFile> include_closure(std::span<const SourceFile> files, std::span<const std::string_view> roots) {
  std::vector<bool> is_needed(files.size());
  std::vector<std::size_t> unread;
  const auto need = [&](std::size_t file) {
    if (!is_needed[file]) unread.push_back(file);
    is_needed[file] = true;
  };
  for (const std::string_view root : roots) {
    const std::optional<std::size_t> file = index_of(files, root);
    if (!file) throw std::logic_error(fmt::format("there is no source file {}", root));
    need(*file);
  }
  while (!unread.empty()) {
    const std::size_t file = unread.back();
    unread.pop_back();
    for (const std::string_view name : quoted_includes(files[file].text))
      if (const std::optional<std::size_t> included = index_of(files, name)) need(*included);
  }
  std::vector<SourceFile> closure;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (is_needed[i]) closure.push_back(files[i]);
  return closure;
}

std::vector<SourceFile> kernel_sources(std::span<const std::string_view> roots) {
  return include_closure(embedded::kernel_templates(), roots);
}

}  // namespace hone
