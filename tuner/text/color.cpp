#include "tuner/text/color.h"

#include <array>
#include <ostream>

namespace hone::tuner {
namespace {

/// The slot of a stream's own data that says whether it has color.
int color_slot() {
  static const int slot = std::ios_base::xalloc();
  return slot;
}

/// Select Graphic Rendition (ECMA-48 SGR), in the order of Paint.
constexpr std::array<std::string_view, 3> kBegin{"\x1b[1m", "\x1b[1;31m", "\x1b[1;33m"};
constexpr std::string_view kEnd = "\x1b[0m";

}  // namespace

std::ostream& operator<<(std::ostream& out, const Painted& painted) {
  if (!has_color(out)) return out << painted.text;
  return out << kBegin[static_cast<std::size_t>(painted.paint)] << painted.text << kEnd;
}

void set_color(std::ostream& out, bool is_on) { out.iword(color_slot()) = is_on ? 1 : 0; }
bool has_color(std::ostream& out) { return out.iword(color_slot()) != 0; }

}  // namespace hone::tuner
