#include "tuner/text/table.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "tuner/text/color.h"

namespace hone::tuner {
namespace {

constexpr std::size_t kGap = 2;

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::string line_of(const std::vector<Column>& columns, const std::vector<std::size_t>& visible,
                    const std::vector<std::size_t>& widths, const std::vector<std::string>& cells, std::size_t indent) {
  std::string line(indent, ' ');
  for (const std::size_t c : visible) {
    const std::string padding(widths[c] - display_width(cells[c]), ' ');
    line += columns[c].align == Align::left ? cells[c] + padding : padding + cells[c];
    line.append(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// Bytes of the UTF-8 sequence that begins with `first`; 0: none does.
std::size_t sequence_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

/// "" where the text begins with a byte that is no UTF-8.
std::string_view first_character(std::string_view text) {
  const std::size_t bytes = sequence_bytes(static_cast<unsigned char>(text.front()));
  if (bytes == 0 || bytes > text.size()) return {};
  const auto is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const std::string_view character = text.substr(0, bytes);
  return std::all_of(character.begin() + 1, character.end(), is_continuation) ? character : std::string_view();
}

/// True if a terminal takes a character for text: no control character of C0 or C1, none that ends a line or turns the
/// direction of what follows (Unicode, Bidirectional Algorithm, 2.1 to 2.6), which would let a name show as another
/// one.
bool is_harmless(std::string_view character) {
  if (character.empty()) return false;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  char32_t code = character.size() == 1 ? byte(0) : byte(0) & (0xFFu >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  const auto is_within = [&](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code >= 0x20 && !is_within(0x7F, 0x9F) && code != 0x061C && !is_within(0x200E, 0x200F) &&
         !is_within(0x2028, 0x202E) && !is_within(0x2066, 0x2069);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_code_point(c); }));
}

std::string truncate(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t end = 0;
  for (std::size_t points = 0; end < text.size(); ++end) {
    if (!continues_code_point(text[end]) && points++ == width - 1) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = first_character(text.substr(at));
    result += is_harmless(character) ? character : "?";
    at += std::max<std::size_t>(character.size(), 1);
  }
  return result;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    lines += printable(text.substr(0, end)) + "\n  ";
  return lines + printable(text);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> result;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    result.push_back(width);
  }
  return result;
}

std::vector<std::size_t> Table::known_columns() const {
  std::vector<std::size_t> known;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const bool is_known = std::any_of(rows_.begin(), rows_.end(), [c](const auto& row) { return row[c] != kUnknown; });
    if (is_known || !columns_[c].if_known) known.push_back(c);
  }
  return known;
}

std::vector<std::size_t> Table::visible_columns(std::size_t max_width, std::size_t indent) const {
  const std::vector<std::size_t> width_of = widths();
  std::vector<std::size_t> visible = known_columns();
  std::size_t total = indent;
  for (const std::size_t c : visible) total += width_of[c] + (c == visible.front() ? 0 : kGap);
  while (max_width > 0 && total > max_width) {
    const auto drop = std::max_element(visible.begin(), visible.end(), [&](std::size_t a, std::size_t b) {
      return columns_[a].drop_order < columns_[b].drop_order;
    });
    if (drop == visible.end() || columns_[*drop].drop_order == 0) break;
    total -= width_of[*drop] + kGap;
    visible.erase(drop);
  }
  return visible;
}

void Table::print(std::ostream& out, int max_width, int indent) const {
  const auto blanks = static_cast<std::size_t>(indent);
  const std::vector<std::size_t> visible = visible_columns(static_cast<std::size_t>(std::max(max_width, 0)), blanks);
  const std::vector<std::size_t> width_of = widths();
  std::vector<std::string> headers;
  for (const Column& column : columns_) headers.push_back(column.header);
  std::string hidden;
  for (const std::size_t c : known_columns()) {
    if (!std::binary_search(visible.begin(), visible.end(), c)) hidden += (hidden.empty() ? "" : ", ") + headers[c];
  }
  out << paint(line_of(columns_, visible, width_of, headers, blanks), Paint::bold) << '\n';
  for (const auto& row : rows_) out << line_of(columns_, visible, width_of, row, blanks) << '\n';
  if (!hidden.empty()) {
    out << std::string(blanks, ' ')
        << truncate("(too narrow for: " + hidden + ")", static_cast<std::size_t>(max_width) - blanks) << '\n';
  }
}

}  // namespace hone::tuner
