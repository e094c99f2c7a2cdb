#include "cache/maintenance/page_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

using Bytes = std::vector<std::byte>;

/// A database of nobody's, made with plain SQL, and the rows that are found on its pages.
class CachePageRecords : public CacheMaintenance {
 protected:
  std::vector<RawRecord> records(PageCounts* counts = nullptr) const { return records_of(read_bytes(file_), counts); }

  static std::vector<RawRecord> records_of(const Bytes& bytes, PageCounts* counts = nullptr) {
    std::vector<RawRecord> found;
    const auto read = [&](std::int64_t offset, std::span<std::byte> part) {
      const auto begin = static_cast<std::size_t>(offset);
      if (begin >= bytes.size()) return false;
      const std::size_t size = std::min(part.size(), bytes.size() - begin);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), size, part.begin());
      return size == part.size();
    };
    const PageCounts pages = each_record(read, static_cast<std::int64_t>(bytes.size()),
                                         [&](const RawRecord& record) { found.push_back(record); });
    if (counts != nullptr) *counts = pages;
    return found;
  }

  /// Records of this many columns, of which the first is a text that begins with "row".
  static std::vector<RawRecord> rows_of(const std::vector<RawRecord>& all, std::size_t columns) {
    std::vector<RawRecord> rows;
    std::copy_if(all.begin(), all.end(), std::back_inserter(rows), [&](const RawRecord& record) {
      const auto* name = record.values.size() == columns ? std::get_if<std::string>(&record.values[0]) : nullptr;
      return name != nullptr && name->starts_with("row");
    });
    return rows;
  }
};

TEST_F(CachePageRecords, EveryKindOfValueComesBack) {
  sql(file_, "CREATE TABLE t (name, a, b, c)");
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
  const std::vector<std::int64_t> numbers{
      0, 1, 2, -1, 127, 128, -32769, 8388608, -8388609, 2147483648, -2147483649, 140737488355328, kLargest, kSmallest};
  for (const std::int64_t number : numbers) {
    const std::string text = number == kSmallest ? "-9223372036854775807 - 1" : std::to_string(number);
    sql(file_, fmt::format("INSERT INTO t VALUES ('row', {}, NULL, 1.5)", text));
  }
  sql(file_, "INSERT INTO t VALUES ('row', 'text', x'00ff', -1e300), ('row', '', x'', 0.25)");
  const std::vector<RawRecord> rows = rows_of(records(), 4);
  ASSERT_EQ(rows.size(), numbers.size() + 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i + 1);
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const RawRecord& r) { return r.row_id == id; });
    ASSERT_NE(row, rows.end());
    EXPECT_TRUE(row->is_table_row);
    EXPECT_EQ(row->values, (std::vector<RawValue>{std::string("row"), numbers[i], RawValue{}, 1.5}));
  }
  const auto has = [&](const std::vector<RawValue>& values) {
    return std::any_of(rows.begin(), rows.end(), [&](const RawRecord& row) { return row.values == values; });
  };
  EXPECT_TRUE(has({std::string("row"), std::string("text"), Bytes{std::byte{0}, std::byte{0xff}}, -1e300}));
  EXPECT_TRUE(has({std::string("row"), std::string(), Bytes{}, 0.25}));
}

TEST_F(CachePageRecords, AnyPageSizeAndLengthWorks) {
  for (const int page_bytes : {512, 1024, 4096, 65536}) {
    std::filesystem::remove(file_);
    sql(file_, fmt::format("PRAGMA page_size = {}; CREATE TABLE t (name, data);"
                           "CREATE TABLE u (name PRIMARY KEY, data) WITHOUT ROWID;"
                           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
                           " INSERT INTO t SELECT 'row ' || i, zeroblob(i * 37 % 9973) FROM n;"
                           "INSERT INTO u SELECT * FROM t",
                           page_bytes));
    const std::vector<RawRecord> rows = rows_of(records(), 2);
    EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const RawRecord& row) { return row.is_table_row; }), 300);
    EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const RawRecord& row) { return !row.is_table_row; }), 300)
        << page_bytes;
    for (const RawRecord& row : rows) {
      const int number = std::stoi(std::get<std::string>(row.values[0]).substr(4));
      EXPECT_EQ(std::get<Bytes>(row.values[1]).size(), static_cast<std::size_t>(number * 37 % 9973)) << page_bytes;
    }
  }
}

TEST_F(CachePageRecords, DeletedRowsDoNotComeBack) {
  sql(file_,
      "CREATE TABLE t (name, data);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
      " INSERT INTO t SELECT 'row ' || i, zeroblob(1500) FROM n; DELETE FROM t WHERE rowid > 10");
  ASSERT_GT(std::stoi(sql(file_, "PRAGMA freelist_count").at(0)), 1030) << "more than one trunk page";
  EXPECT_EQ(rows_of(records(), 2).size(), 10u);
}

TEST_F(CachePageRecords, HeaderMayBeGone) {
  sql(file_, "CREATE TABLE t (name, data); INSERT INTO t VALUES ('row', 1)");
  const Bytes intact = read_bytes(file_);
  for (const int value : {0x00, 0x55, 0xff}) {
    Bytes bytes = intact;
    std::fill_n(bytes.begin(), 100, static_cast<std::byte>(value));
    EXPECT_EQ(rows_of(records_of(bytes), 2).size(), 1u) << value;
  }
}

TEST_F(CachePageRecords, TruncatedFileGivesWhatIsLeft) {
  sql(file_,
      "PRAGMA page_size = 512; CREATE TABLE t (name, data);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
      " INSERT INTO t SELECT 'row ' || i, i FROM n");
  const Bytes whole = read_bytes(file_);
  std::size_t before = 0;
  for (std::size_t size = 0; size <= whole.size(); size += 100) {
    PageCounts counts;
    const std::size_t rows =
        rows_of(records_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, &counts), 2).size();
    EXPECT_GE(rows, before) << size;
    EXPECT_EQ(counts.unreadable_pages, size % 512 == 0 ? 0 : 1) << size;
    before = rows;
  }
  EXPECT_EQ(rows_of(records_of(whole), 2).size(), 100u);
}

/// Two pages of 512 bytes, with one cell on the second at this offset.
Bytes file_with_cell(std::size_t offset, const std::vector<int>& cell) {
  Bytes bytes(1024);
  bytes[16] = std::byte{2};
  bytes[512] = std::byte{0x0d};
  bytes[516] = std::byte{1};
  bytes[520] = static_cast<std::byte>(offset >> 8);
  bytes[521] = static_cast<std::byte>(offset & 0xff);
  for (std::size_t i = 0; i < cell.size(); ++i) bytes.at(512 + offset + i) = static_cast<std::byte>(cell[i]);
  return bytes;
}

TEST_F(CachePageRecords, CellsThatCannotBeAreSkipped) {
  std::vector<int> many_columns(207, 0);
  for (const auto& [at, value] : {std::pair{0, 0x81}, {1, 0x4b}, {2, 1}, {3, 0x81}, {4, 0x4b}})
    many_columns[static_cast<std::size_t>(at)] = value;
  EXPECT_EQ(records_of(file_with_cell(100, {3, 1, 2, 1, 7})).size(), 1u) << "this one can be";
  EXPECT_TRUE(records_of(file_with_cell(511, {0xff})).empty()) << "a length that goes on behind the page";
  EXPECT_TRUE(records_of(file_with_cell(510, {5, 0xff})).empty()) << "a row id that does";
  EXPECT_TRUE(records_of(file_with_cell(100, {0xff, 0xff, 0xff, 0x7f, 1})).empty()) << "longer than the file";
  EXPECT_TRUE(records_of(file_with_cell(100, {2, 1, 2, 10})).empty()) << "a type that is in no file";
  EXPECT_TRUE(records_of(file_with_cell(100, {2, 1, 9, 1})).empty()) << "a header longer than the record";
  EXPECT_TRUE(records_of(file_with_cell(100, many_columns)).empty()) << "201 columns";
  EXPECT_TRUE(records_of(file_with_cell(100, {0x84, 0x00, 1, 2, 1, 7})).empty()) << "the rest is on no page";
}

TEST_F(CachePageRecords, HeadersThatCannotBeAreNotBelieved) {
  sql(file_, "CREATE TABLE t (rowid_ INTEGER PRIMARY KEY, name, data); INSERT INTO t VALUES (-5, 'row', 1)");
  const Bytes intact = read_bytes(file_);
  const auto rows = [&](const std::vector<std::pair<std::size_t, int>>& changes, std::size_t size) {
    Bytes bytes = intact;
    for (const auto& [at, value] : changes) bytes[at] = static_cast<std::byte>(value);
    bytes.resize(size);
    const std::vector<RawRecord> all = records_of(bytes);
    return std::count_if(all.begin(), all.end(), [](const RawRecord& record) { return record.row_id == -5; });
  };
  EXPECT_EQ(rows({}, intact.size()), 1);
  EXPECT_EQ(rows({{16, 1}, {17, 0}}, intact.size()), 1) << "pages of 256 bytes";
  EXPECT_EQ(rows({{20, 32}}, intact.size()), 1) << "reserved bytes";
  EXPECT_EQ(rows({{35, 3}, {8195, 3}}, 3 * 4096), 1) << "a list of free pages that goes round";
  EXPECT_EQ(rows({{35, 3}}, 2 * 4096 + 100), 1) << "one that begins on a page that is cut off";
}

TEST_F(CachePageRecords, NothingThatIsWrittenThereIsBelieved) {
  sql(file_,
      "PRAGMA page_size = 512; CREATE TABLE t (name, data); CREATE INDEX i ON t (data);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
      " INSERT INTO t SELECT 'row ' || i, randomblob(i * 29) FROM n; DELETE FROM t WHERE rowid % 3 = 0");
  const Bytes intact = read_bytes(file_);
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = intact;
    for (int change = 0; change < 20; ++change) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    for (const RawRecord& record : records_of(bytes)) EXPECT_LE(record.values.size(), 200u);
  }
}

}  // namespace
}  // namespace hone::cache
