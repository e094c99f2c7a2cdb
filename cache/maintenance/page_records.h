// each_record(): the rows on the pages of an SQLite file, found without its trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace hone::cache {

/// One column of a row; NULL is std::monostate.
using RawValue = std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::byte>>;

struct RawRecord {
  bool is_table_row = false;  ///< of a table with row ids; otherwise of an index, or of a table WITHOUT ROWID
  std::int64_t row_id = 0;    ///< of a table row
  std::vector<RawValue> values;
};

/// Fills `bytes` from `offset` on; false where they cannot be read.
using ReadBytes = std::function<bool(std::int64_t offset, std::span<std::byte> bytes)>;

struct PageCounts {
  std::int64_t pages = 0;
  std::int64_t unreadable_pages = 0;
};

/// Visits every record that stands on a page, in the order of the file, by the format of sqlite.org/fileformat2. Needs
/// neither the header of the file nor the pages above: what says which table a row is of is its columns. Pages that are
/// listed as free are left out while that list can be followed.
///
/// Trusts nothing: each number is checked against the file before it is used, and what does not fit is skipped. Rows
/// may be damaged; whoever takes them checks their digests.
PageCounts each_record(const ReadBytes& read, std::int64_t file_bytes,
                       const std::function<void(const RawRecord&)>& visit);

}  // namespace hone::cache
