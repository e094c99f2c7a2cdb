// StatusLine: a line on standard error that is redrawn in place while a command works.
#pragma once

#include <cstddef>
#include <string_view>

#include "tuner/context/context.h"

namespace hone::tuner {

/// Draws on a terminal alone. Erased when it goes out of scope.
class StatusLine {
 public:
  explicit StatusLine(const Context& context) : context_(context) {}
  ~StatusLine() { erase(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// The columns that a line may have; 0 if nothing is drawn. Terminals are resized, so ask each time.
  std::size_t columns() const;

  /// Puts the text in place of the one before.
  void draw(std::string_view text);

  /// Makes room for lines that stay.
  void erase();

 private:
  const Context& context_;
  bool drawn_ = false;
};

}  // namespace hone::tuner
