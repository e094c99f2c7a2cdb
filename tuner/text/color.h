// paint(): colors for terminals, written only to streams that set_color() has turned them on for.
#pragma once

#include <iosfwd>
#include <string_view>

namespace hone::tuner {

enum class Paint { bold, red, yellow };

struct Painted {
  std::string_view text;
  Paint paint;
};

/// The text in a color, or as it stands where the stream has no color. `text` must outlive the result.
inline Painted paint(std::string_view text, Paint how) { return {text, how}; }
std::ostream& operator<<(std::ostream& out, const Painted& painted);

/// Off by default. Files and pipes have none.
void set_color(std::ostream& out, bool is_on);
bool has_color(std::ostream& out);

}  // namespace hone::tuner
