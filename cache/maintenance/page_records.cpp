#include "cache/maintenance/page_records.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "cache/maintenance/big_endian.h"

namespace hone::cache {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::int64_t kHeaderBytes = 100;
constexpr std::int64_t kDefaultPageBytes = 4096;

/// A kind of page that holds records. The inner pages of a table hold none.
struct PageKind {
  std::uint64_t mark;
  bool holds_table_rows;
  std::size_t header_bytes;
  std::size_t cell_prefix_bytes;  ///< the number of the page below
};

constexpr std::array<PageKind, 3> kPageKinds{{
    {0x0d, true, 8, 0},
    {0x0a, false, 8, 0},
    {0x02, false, 12, 4},
}};

/// Far more than any table of ours has.
constexpr std::size_t kMaxColumns = 200;

/// A number of `size` bytes; nullopt past the end.
std::optional<std::uint64_t> number_at(Bytes bytes, std::size_t offset, std::size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return big_endian(bytes.subspan(offset, size));
}

/// SQLite's variable-length integer of 1 to 9 bytes; takes it off the front.
std::optional<std::uint64_t> take_varint(Bytes& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 9 && i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    const bool is_last = i == 8 || byte < 0x80;
    value = i == 8 ? value << 8 | byte : value << 7 | (byte & 0x7f);
    if (!is_last) continue;
    bytes = bytes.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

std::int64_t sign_extended(std::uint64_t value, std::size_t bytes) {
  if (bytes == 8) return static_cast<std::int64_t>(value);
  const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
  return static_cast<std::int64_t>((value ^ sign) - sign);
}

/// One column by its serial type; nullopt when the body ends before it.
std::optional<RawValue> take_value(std::uint64_t type, Bytes& body) {
  constexpr std::size_t kIntegerBytes[] = {0, 1, 2, 3, 4, 6, 8};
  if (type == 0) return RawValue{};
  if (type == 8 || type == 9) return RawValue{static_cast<std::int64_t>(type - 8)};
  if (type == 10 || type == 11) return std::nullopt;  // never in a file
  const std::uint64_t size = type >= 12 ? (type - 12) / 2 : type == 7 ? 8 : kIntegerBytes[type];
  if (size > body.size()) return std::nullopt;
  const Bytes bytes = body.first(static_cast<std::size_t>(size));
  body = body.subspan(bytes.size());
  if (type == 7) return RawValue{std::bit_cast<double>(big_endian(bytes))};
  if (type < 7) return RawValue{sign_extended(big_endian(bytes), bytes.size())};
  if (type % 2 == 0) return RawValue{std::vector<std::byte>(bytes.begin(), bytes.end())};
  return RawValue{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
}

std::optional<std::vector<RawValue>> parse_payload(Bytes payload) {
  Bytes rest = payload;
  const std::optional<std::uint64_t> header_bytes = take_varint(rest);
  if (!header_bytes || *header_bytes > payload.size() || *header_bytes < payload.size() - rest.size()) {
    return std::nullopt;
  }
  Bytes types = payload.subspan(payload.size() - rest.size(),
                                static_cast<std::size_t>(*header_bytes) - (payload.size() - rest.size()));
  Bytes body = payload.subspan(static_cast<std::size_t>(*header_bytes));
  std::vector<RawValue> values;
  while (!types.empty()) {
    const std::optional<std::uint64_t> type = take_varint(types);
    std::optional<RawValue> value = type ? take_value(*type, body) : std::nullopt;
    if (!value || values.size() == kMaxColumns) return std::nullopt;
    values.push_back(*std::move(value));
  }
  return values;
}

class Scanner {
 public:
  Scanner(const ReadBytes& read, std::int64_t file_bytes, const std::function<void(const RawRecord&)>& visit)
      : read_(read), visit_(visit) {
    std::vector<std::byte> header(static_cast<std::size_t>(std::min(kHeaderBytes, file_bytes)));
    read_(0, header);
    const std::uint64_t stored = number_at(header, 16, 2).value_or(0);
    const std::uint64_t bytes = stored == 1 ? 65536 : stored;
    // Files of ours have the default; a damaged header must not decide otherwise without being plausible.
    const bool plausible = std::has_single_bit(bytes) && bytes >= 512 && number_at(header, 20, 1) == 0u;
    page_bytes_ = plausible ? static_cast<std::int64_t>(bytes) : kDefaultPageBytes;
    page_count_ = (file_bytes + page_bytes_ - 1) / page_bytes_;
    page_.resize(static_cast<std::size_t>(page_bytes_));
    list_free_pages(static_cast<std::int64_t>(number_at(header, 32, 4).value_or(0)));
  }

  PageCounts scan() {
    for (std::int64_t number = 1; number <= page_count_; ++number) {
      ++counts_.pages;
      std::fill(page_.begin(), page_.end(), std::byte{0});
      // The last page of a truncated file is there in part: what is not reads as zero.
      if (!read_page(number, page_)) ++counts_.unreadable_pages;
      if (!is_free_[static_cast<std::size_t>(number - 1)]) scan_page(number == 1 ? kHeaderBytes : 0);
    }
    return counts_;
  }

 private:
  bool read_page(std::int64_t number, std::span<std::byte> page) const {
    return number >= 1 && number <= page_count_ && read_((number - 1) * page_bytes_, page);
  }

  /// Deleted records must not come back. Each trunk page names the next and its leaves.
  void list_free_pages(std::int64_t trunk) {
    is_free_.assign(static_cast<std::size_t>(page_count_), false);
    while (trunk >= 1 && trunk <= page_count_ && !is_free_[static_cast<std::size_t>(trunk - 1)]) {
      if (!read_page(trunk, page_)) return;
      is_free_[static_cast<std::size_t>(trunk - 1)] = true;
      const std::size_t room = page_.size() / 4 - 2;
      const auto leaves = std::min<std::size_t>(number_at(page_, 4, 4).value_or(0), room);
      for (std::size_t i = 0; i < leaves; ++i) {
        const auto leaf = static_cast<std::int64_t>(number_at(page_, 8 + 4 * i, 4).value_or(0));
        if (leaf >= 1 && leaf <= page_count_) is_free_[static_cast<std::size_t>(leaf - 1)] = true;
      }
      trunk = static_cast<std::int64_t>(number_at(page_, 0, 4).value_or(0));
    }
  }

  void scan_page(std::int64_t header) {
    const auto start = static_cast<std::size_t>(header);
    const auto mark = number_at(page_, start, 1);
    const auto kind =
        std::find_if(kPageKinds.begin(), kPageKinds.end(), [&](const PageKind& k) { return k.mark == mark; });
    if (kind == kPageKinds.end()) return;
    const auto cells = static_cast<std::size_t>(number_at(page_, start + 3, 2).value_or(0));
    for (std::size_t i = 0; i < cells; ++i) {
      const auto offset = number_at(page_, start + kind->header_bytes + 2 * i, 2);
      if (!offset) return;  // more cells than a page has room for
      const std::size_t begin = static_cast<std::size_t>(*offset) + kind->cell_prefix_bytes;
      if (begin < page_.size()) take_cell(kind->holds_table_rows, Bytes(page_).subspan(begin));
    }
  }

  void take_cell(bool is_table_row, Bytes cell) {
    RawRecord record;
    record.is_table_row = is_table_row;
    const std::optional<std::uint64_t> payload_bytes = take_varint(cell);
    if (!payload_bytes || *payload_bytes > static_cast<std::uint64_t>(page_count_ * page_bytes_)) return;
    if (is_table_row) {
      const std::optional<std::uint64_t> row_id = take_varint(cell);
      if (!row_id) return;
      record.row_id = static_cast<std::int64_t>(*row_id);
    }
    const std::optional<std::vector<std::byte>> payload = take_payload(is_table_row, *payload_bytes, cell);
    if (!payload) return;
    std::optional<std::vector<RawValue>> values = parse_payload(*payload);
    if (!values) return;
    record.values = *std::move(values);
    visit_(record);
  }

  /// The payload of a cell: what is on the page, and what is on overflow pages.
  std::optional<std::vector<std::byte>> take_payload(bool is_table_row, std::uint64_t size, Bytes cell) {
    // The names are those of the format's description; reserved bytes at the end of pages are none (see the header).
    const std::uint64_t u = static_cast<std::uint64_t>(page_bytes_);
    const std::uint64_t x = is_table_row ? u - 35 : (u - 12) * 64 / 255 - 23;
    const std::uint64_t m = (u - 12) * 32 / 255 - 23;
    const std::uint64_t k = size <= x ? size : m + (size - m) % (u - 4);
    const std::uint64_t local = size <= x ? size : (k <= x ? k : m);
    if (local > cell.size()) return std::nullopt;
    const Bytes on_page = cell.first(static_cast<std::size_t>(local));
    std::vector<std::byte> payload(on_page.begin(), on_page.end());
    if (local == size) return payload;
    std::optional<std::uint64_t> next = number_at(cell, static_cast<std::size_t>(local), 4);
    overflow_.resize(page_.size());
    // Ends on a loop too: each round makes the payload longer.
    while (payload.size() < size) {
      if (!next || !read_page(static_cast<std::int64_t>(*next), overflow_)) return std::nullopt;
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(size - payload.size(), u - 4));
      payload.insert(payload.end(), overflow_.begin() + 4, overflow_.begin() + 4 + static_cast<std::ptrdiff_t>(take));
      next = number_at(overflow_, 0, 4);
    }
    return payload;
  }

  const ReadBytes& read_;
  const std::function<void(const RawRecord&)>& visit_;
  std::int64_t page_bytes_ = kDefaultPageBytes;
  std::int64_t page_count_ = 0;
  std::vector<std::byte> page_;
  std::vector<std::byte> overflow_;
  std::vector<bool> is_free_;
  PageCounts counts_;
};

}  // namespace

PageCounts each_record(const ReadBytes& read, std::int64_t file_bytes,
                       const std::function<void(const RawRecord&)>& visit) {
  return Scanner(read, file_bytes, visit).scan();
}

}  // namespace hone::cache
