#include "tuner/context/status_line.h"

#include <ostream>

namespace hone::tuner {
namespace {

/// Back to the first column and clear to the end of the line (ECMA-48 EL).
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

std::size_t StatusLine::columns() const {
  // The last column stays free, or some terminals wrap.
  const int columns = context_.environment.err_columns();
  return columns > 1 ? static_cast<std::size_t>(columns) - 1 : 0;
}

void StatusLine::draw(std::string_view text) {
  if (columns() == 0) return;
  context_.err << kEraseLine << text << std::flush;
  drawn_ = true;
}

void StatusLine::erase() {
  if (drawn_) context_.err << kEraseLine << std::flush;
  drawn_ = false;
}

}  // namespace hone::tuner
