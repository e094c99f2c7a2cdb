// Shipped winners: tuned winners of one device as readable text, without code, which a package installs.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"

namespace hone::cache {

/// Stands before the origin in WinnerRecord::lender of a winner that was shipped.
inline constexpr std::string_view kShippedMark = "shipped: ";

/// How a text of winners begins.
inline constexpr std::string_view kShippedBegin = "hone_winners ";

/// True of a tuned winner that came from a file of shipped winners.
inline bool is_shipped(const WinnerRecord& winner) { return winner.tuned && winner.lender.starts_with(kShippedMark); }

/// The head of a file of shipped winners, which is true of all of them.
struct ShippedHeader {
  std::string version;  ///< of Hone
  std::string date;     ///< of the newest winner: "2026-11-25"
  DeviceRecord device;
  std::string compiler;
  std::string driver;
};

/// The text of the tuned winners among `winners`, which are all of the device of the header; those that were shipped
/// themselves are left out. Neighbouring ranges with the same candidate become one row. docs/cache.md has the grammar.
std::string shipped_text(const ShippedHeader& header, const std::vector<StoredWinner>& winners);

/// One file, read when it is first asked: then its lines are found, and the rows of a problem's key are parsed when a
/// query first has that key. A file that does not exist has no winners. A line that cannot be read is reported with its
/// number, once, and left out. Thread-safe.
class ShippedWinners {
 public:
  /// Receives one message for each fault.
  using Report = std::function<void(const std::string&)>;

  explicit ShippedWinners(std::filesystem::path path) : path_(std::move(path)) {}

  /// The winner for the query, without code: of the same device, sources and compiler options. None where the query
  /// needs code.
  std::optional<Hit> find(const Query& query, const Report& report);

  /// As Store::find_near(); of other sources, too (NearWinner::other_source). It has what find() returns, too.
  std::vector<NearWinner> find_near(std::span<const Query> queries, const std::array<RangeRecord, 3>& extents,
                                    const Report& report);

 private:
  struct Row {
    std::array<RangeRecord, 3> sizes;
    WinnerRecord winner;
  };

  /// The rows below one line in brackets.
  struct Group {
    ProblemRecord problem;  ///< without sizes
    std::string family_digest;
    std::size_t first_line = 0;  ///< of its rows
    std::string_view text;       ///< its rows
    std::optional<std::vector<Row>> rows = {};  ///< once they were parsed
  };

  void read(const Report& report);
  void read_header(std::string_view line, std::size_t number, const Report& report);
  void fail(std::size_t line, std::string_view what, const Report& report) const;
  const std::vector<Row>& rows_of(Group& group, const Report& report) const;
  std::vector<Group>* groups_for(const Query& query, const Report& report);

  const std::filesystem::path path_;
  std::mutex mutex_;
  bool is_read_ = false;
  std::string text_;
  ShippedHeader header_;
  std::map<std::string, std::vector<Group>, std::less<>> groups_;  ///< by what no loan bridges, and operation and dtype
};

}  // namespace hone::cache
