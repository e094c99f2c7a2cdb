#include "tuner/cache/import_lines.h"

#include <fmt/core.h>

#include <istream>
#include <string>
#include <utility>
#include <variant>

#include "cache/rows.h"
#include "tuner/cache/exchange_lines.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// Reads a line without its end; false at the end of the file. Throws LineError past kMaxLineBytes, and where the last
/// line has no end.
bool read_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& buffer = *in.rdbuf();
  for (int c = buffer.sbumpc(); c != std::streambuf::traits_type::eof(); c = buffer.sbumpc()) {
    if (c == '\n') return true;
    if (line.size() == kMaxLineBytes) throw LineError("it is longer than " + format_bytes(kMaxLineBytes));
    line.push_back(static_cast<char>(c));
  }
  if (line.empty()) return false;
  throw LineError("the file ends in the middle of it: it is truncated");
}

/// Follows the lines through the grammar of an export, and collects what they hold.
class LineCollector {
 public:
  LineCollector(cache::Import& import, bool with_binaries) : import_(import), with_binaries_(with_binaries) {}

  void take(ExchangeLine line) {
    if (has_ended_) throw LineError("there is more after the end of the export");
    const bool is_header = std::holds_alternative<HeaderLine>(line);
    if (is_header == has_begun_) {
      throw LineError(is_header
                          ? "it is a second header; import one export after the other"
                          : "it is no header, {\"hone_cache_export\":1,…}: this is not what hone cache export writes");
    }
    has_begun_ = true;
    std::visit([this](auto& part) { take_part(part); }, line);
  }

  bool has_begun() const { return has_begun_; }
  bool has_ended() const { return has_ended_; }

 private:
  void take_part(HeaderLine&) {}

  void take_part(BinaryLine& line) {
    ++counts_.binaries;
    const std::string digest = cache::binary_digest(line.binary);
    if (digest != line.digest) throw LineError("the digest of the binary does not hold: it was changed or damaged");
    if (with_binaries_) import_.add(line.binary);
  }

  void take_part(cache::Entry& entry) {
    ++counts_.winners;
    if (import_.add(entry)) return;
    const cache::ProblemRecord& problem = entry.key.problem;
    throw LineError(
        fmt::format("it is a second winner for {} {} {} of {} to {} elements on {}; an export has one for "
                    "each key",
                    printable(problem.family), printable(problem.operation), printable(problem.dtype),
                    problem.sizes[0].first, problem.sizes[0].last, printable(entry.key.device.name)));
  }

  void take_part(const EndLine& end) {
    if (end.binaries != counts_.binaries || end.winners != counts_.winners) {
      throw LineError(fmt::format("the export had {} binaries and {} winners, this file has {} and {}", end.binaries,
                                  end.winners, counts_.binaries, counts_.winners));
    }
    has_ended_ = true;
  }

  cache::Import& import_;
  bool with_binaries_;
  EndLine counts_;
  bool has_begun_ = false;
  bool has_ended_ = false;
};

}  // namespace

void collect_lines(std::istream& in, cache::Import& import, bool with_binaries) {
  LineCollector collector(import, with_binaries);
  std::int64_t number = 1;
  try {
    for (std::string line; read_line(in, line); ++number) collector.take(parse_line(line));
    if (!collector.has_begun()) throw LineError("the file is empty");
    if (!collector.has_ended()) throw LineError("the export has no end: the file is truncated");
  } catch (const LineError& error) {
    throw LineError(fmt::format("line {}: {}", number, error.what()));
  }
}

}  // namespace hone::tuner
