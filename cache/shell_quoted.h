// shell_quoted(): a word as a POSIX shell reads it.
#pragma once

#include <string>
#include <string_view>

namespace hone::cache {

/// As it is where that is safe, else in quotes, 'it'\''s'.
std::string shell_quoted(std::string_view word);

}  // namespace hone::cache
