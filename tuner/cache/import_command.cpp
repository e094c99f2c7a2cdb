#include "tuner/cache/import_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <istream>
#include <ostream>
#include <system_error>

#include "cache/maintenance/exchange.h"
#include "cache/rows.h"
#include "tuner/cache/cache_output.h"
#include "tuner/cache/exchange_lines.h"
#include "tuner/quantities.h"
#include "tuner/table.h"

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
      throw LineError(is_header ? "it is a second header; import one export after the other"
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
    throw LineError(fmt::format("it is a second winner for {} {} {} of {} to {} elements on {}; an export has one for "
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

std::string name_of(const std::string& file) { return file == "-" ? "standard input" : printable(file); }

void collect(std::istream& in, const std::string& file, LineCollector& collector) {
  std::int64_t number = 1;
  try {
    for (std::string line; read_line(in, line); ++number) collector.take(parse_line(line));
    if (!collector.has_begun()) throw LineError("the file is empty");
    if (!collector.has_ended()) throw LineError("the export has no end: the file is truncated");
  } catch (const LineError& error) {
    throw CommandError(ExitCode::input, fmt::format("{}, line {}: {}; nothing was imported", name_of(file), number,
                                                    error.what()));
  }
}

/// Throws CommandError(input).
void open(const std::string& file, std::ifstream& in) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw CommandError(ExitCode::input, fmt::format("'{}' cannot be read: it is a directory", printable(file)));
  }
  in.open(file, std::ios::binary);
  if (!in) {
    throw CommandError(ExitCode::input, fmt::format("'{}' cannot be read: {}", printable(file),
                                                    std::generic_category().message(errno)));
  }
}

}  // namespace

void set_up_cache_import(CLI::App& cache, CacheImportOptions& options) {
  CLI::App* sub = cache.add_subcommand("import");
  sub->add_option("FILE", options.file);
  sub->add_option("--cache", options.cache)->take_last();
  sub->add_flag("--no-binaries", options.no_binaries)->disable_flag_override();
  sub->add_flag("--dry-run", options.dry_run)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_import(const CacheImportOptions& options, const Context& context) {
  if (options.file.empty()) {
    throw CommandError(ExitCode::usage, "no file was given; name one that hone cache export wrote, or - for standard input");
  }
  const std::filesystem::path path = cache_file(options.cache, context);
  cache::Import import(path);
  LineCollector collector(import, !options.no_binaries);
  if (options.file == "-") {
    collect(*context.environment.in, options.file, collector);
  } else {
    std::ifstream in;
    open(options.file, in);
    collect(in, options.file, collector);
  }
  const cache::CopyCounts counts =
      import.merge_into(path, {.binaries = !options.no_binaries, .dry_run = options.dry_run});
  if (options.json) {
    nlohmann::ordered_json json{{"cache", path.string()}, {"dry_run", options.dry_run}};
    json.update(to_json(counts));
    print_json(json, context);
    return ExitCode::ok;
  }
  context.out << fmt::format("{}Winners of {} into {}\n", options.dry_run ? "Dry run: " : "", name_of(options.file),
                             printable(path.string()));
  print_counts(counts, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
