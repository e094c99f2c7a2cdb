#include "runtime/families/row_parts.h"

#include <algorithm>
#include <random>

namespace hone {

std::vector<ElementRange> parts_of_rows(std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
  constexpr std::int64_t kElements = 1 << 15;  // to compute, of all rows together
  constexpr std::int64_t kPiece = 1024;        // to compare, at the beginning and end of a row and in its middle
  if (rows == 0 || columns == 0) return {};
  const std::int64_t count = std::min(rows, std::max<std::int64_t>(3, kElements / columns));
  std::vector<std::int64_t> chosen{0, rows - 1};
  const std::int64_t run = std::max<std::int64_t>(1, kPiece / columns);  // short rows side by side: each part is a copy
  std::mt19937_64 random(static_cast<std::uint64_t>(rows * 31 + columns));
  while (count < rows && static_cast<std::int64_t>(chosen.size()) < count) {
    const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows));
    for (std::int64_t row = first; row < std::min(rows, first + run); ++row) chosen.push_back(row);
  }
  if (count == rows) {
    chosen.resize(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) chosen[static_cast<std::size_t>(row)] = row;
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());

  std::vector<ElementRange> parts;
  const auto add = [&](std::int64_t first, std::int64_t length) {
    if (!parts.empty() && parts.back().first + parts.back().count == first)
      parts.back().count += length;
    else
      parts.push_back({first, length});
  };
  for (const std::int64_t row : chosen) {
    const std::int64_t first = row * pitch;
    if (columns <= 3 * kPiece) {
      add(first, columns);
    } else {
      add(first, kPiece);
      add(first + columns / 2, kPiece);
      add(first + columns - kPiece, kPiece);
    }
  }
  return parts;
}

}  // namespace hone
