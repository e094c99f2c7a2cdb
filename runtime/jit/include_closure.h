// include_closure(): which of some source files a unit needs.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// The files that `roots` name and all that they include with quotes, directly or not, in the order of `files`. Throws
/// std::logic_error for a root that is not among them; an include that is not is none of ours.
std::vector<SourceFile> include_closure(std::span<const SourceFile> files, std::span<const std::string_view> roots);

/// The same of the embedded kernel_templates/.
std::vector<SourceFile> kernel_sources(std::span<const std::string_view> roots);
inline std::vector<SourceFile> kernel_sources(std::initializer_list<std::string_view> roots) {
  return kernel_sources(std::span(roots.begin(), roots.size()));
}

}  // namespace hone
