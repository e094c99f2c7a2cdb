// Imports any bytes as an export. What is refused must be refused as a LineError; what is taken must be found intact,
// come out again as it went in, and change nothing when it is imported once more. Bytes that do not begin as a line of
// JSON are made into winners, so that the digests hold and what is behind them is reached.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>

#include "cache/fields.h"
#include "cache/maintenance/exchange.h"
#include "cache/maintenance/verify.h"
#include "cache/rows.h"
#include "tests/fuzz/seeds.h"
#include "tuner/cache/exchange_lines.h"
#include "tuner/cache/import_lines.h"

namespace hone::tuner {
namespace {

using cache::fail;

std::string export_text(const std::filesystem::path& file) {
  std::string text = *to_line(HeaderLine{}) + "\n";
  EndLine end;
  cache::export_entries(file, {.binary =
                                   [&](const std::string& digest, const cache::BinaryRecord& binary) {
                                     const auto line = to_line(BinaryLine{digest, binary});
                                     if (!line) fail("what came in as JSON does not come out again");
                                     text += *line + "\n";
                                     ++end.binaries;
                                   },
                               .entry =
                                   [&](const cache::Entry& entry) {
                                     const auto line = to_line(entry);
                                     if (!line) fail("what came in as JSON does not come out again");
                                     text += *line + "\n";
                                     ++end.winners;
                                   }});
  return text + *to_line(end) + "\n";
}

/// Imports a text; nullopt where it is refused.
std::optional<cache::CopyCounts> import(const std::string& text, const std::filesystem::path& file) {
  cache::Import import(file);
  std::istringstream in(text);
  try {
    collect_lines(in, import, true);
  } catch (const LineError&) {
    return std::nullopt;
  }
  return import.merge_into(file, {});
}

void check_text(const std::string& text) {
  const std::filesystem::path file = cache::work_folder() / "imported.sqlite";
  const auto counts = import(text, file);
  if (!counts) return;
  if (!cache::verify(file).intact()) fail("an imported file is damaged");
  const std::string once = export_text(file);
  const auto again = import(text, file);
  if (!again || !again->changes_nothing()) fail("the second import of a file is not that of the first");
  const std::filesystem::path copy = cache::work_folder() / "copy.sqlite";
  if (!import(once, copy)) fail("an export is refused");
  if (export_text(copy) != once) fail("an export of an import is another");
}

/// Takes fields off the front of the bytes.
class Maker {
 public:
  explicit Maker(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool is_done() const { return bytes_.empty(); }

  void operator()(std::string_view, std::string& value) {
    const std::size_t wanted = number<std::uint8_t>() % 16;
    const std::size_t size = std::min(wanted, bytes_.size());
    value.assign(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
  }
  void operator()(std::string_view, bool& value) { value = number<std::uint8_t>() % 2 == 1; }
  void operator()(std::string_view, int& value) { value = number<std::uint8_t>() < 200 ? small() : number<int>(); }
  void operator()(std::string_view, std::int64_t& value) {
    value = number<std::uint8_t>() < 200 ? small() : number<std::int64_t>();
  }
  void operator()(std::string_view, double& value) {
    value = number<std::uint8_t>() < 200 ? small() / 8.0 : number<double>();
  }

  cache::Entry entry() {
    cache::Entry entry;
    each_field(entry.key.device, std::ref(*this));
    each_field(entry.key.toolchain, std::ref(*this));
    each_field(entry.key.problem, std::ref(*this));
    each_field(entry.winner, std::ref(*this));
    (*this)("", entry.created_at);
    (*this)("", entry.binary);
    if (small() % 2 == 0) return entry;
    each_field(entry.tuning.emplace(), std::ref(*this));
    for (int trials = small() % 4; trials > 0; --trials) {
      each_field(entry.tuning->trials.emplace_back(), std::ref(*this));
    }
    return entry;
  }

 private:
  template <class T>
  T number() {
    T value{};
    const std::size_t size = std::min(sizeof value, bytes_.size());
    std::memcpy(&value, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  int small() { return number<std::uint8_t>(); }

  std::span<const std::uint8_t> bytes_;
};

void check_entries(std::span<const std::uint8_t> bytes) {
  std::string text = *to_line(HeaderLine{}) + "\n";
  EndLine end;
  for (Maker maker(bytes); !maker.is_done();) {
    const cache::Entry entry = maker.entry();
    const std::optional<std::string> line = to_line(entry);
    if (!line) continue;
    try {
      const cache::Entry back = std::get<cache::Entry>(parse_line(*line));
      if (entry_digest(back) != entry_digest(entry)) fail("a line does not come back as it was written");
    } catch (const LineError&) {
      continue;  // a range of nothing, a time that is none, a negative number
    }
    text += *line + "\n";
    ++end.winners;
  }
  check_text(text + *to_line(end) + "\n");
}

}  // namespace
}  // namespace hone::tuner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(hone::cache::write_work_file({}));
  if (size == 0 || data[0] == '{')
    hone::tuner::check_text(std::string(reinterpret_cast<const char*>(data), size));
  else
    hone::tuner::check_entries({data, size});
  return 0;
}
