// Table: text in aligned columns.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

/// A table shows this where a figure is not known.
inline constexpr std::string_view kUnknown = "–";

enum class Align { left, right };

struct Column {
  std::string header;
  Align align = Align::left;
  int drop_order = 0;     ///< where width is short, columns with the highest go first; 0 stays always
  bool if_known = false;  ///< left out where every cell is kUnknown
};

/// Rows of UTF-8 cells. Control characters in cells are replaced, so that a name out of a file cannot write to the
/// terminal on its own behalf.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// One cell for each column.
  void add_row(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  /// Prints headers and rows, indented by `indent` blanks, without trailing blanks. With a `max_width` above 0, columns
  /// are left out by their drop_order until the table fits, and a line names them.
  void print(std::ostream& out, int max_width = 0, int indent = 0) const;

 private:
  std::vector<std::size_t> widths() const;
  std::vector<std::size_t> known_columns() const;
  std::vector<std::size_t> visible_columns(std::size_t max_width, std::size_t indent) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns that valid UTF-8 takes on a terminal: one per code point (no text of ours has wide characters).
std::size_t display_width(std::string_view text);

/// The text cut to `width` columns, with "…" as the last where something was cut.
std::string truncate(std::string_view text, std::size_t width);

/// The text with every control character replaced by '?'.
std::string printable(std::string_view text);

/// The same of a text of several lines, which it keeps; all but the first are indented by two blanks.
std::string printable_lines(std::string_view text);

}  // namespace hone::tuner
