#include "tuner/text/document_reader.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <system_error>

#include "tuner/text/quantities.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// Larger files are none that a person wrote.
constexpr std::uintmax_t kMostBytes = 16 << 20;

}  // namespace

CommandError DocumentReader::wrong_kind(const FileField& field, const FileValue& value, std::string_view wanted) const {
  return error(value.at, fmt::format("'{}' is {}, and must be {}", printable(field.name), kind_of(value), wanted));
}

void DocumentReader::require_known(const FileTable& table, std::span<const std::string_view> known,
                                   std::string_view what) const {
  for (const FileField& field : table)
    if (std::find(known.begin(), known.end(), field.name) == known.end())
      throw error(field.at, fmt::format("{} has no field '{}'{}; known are {}", what, printable(field.name),
                                        did_you_mean(field.name, known), fmt::join(known, ", ")));
}

bool DocumentReader::read_flag(const FileField& field) const {
  if (const bool* flag = std::get_if<bool>(&field.value.content)) return *flag;
  throw wrong_kind(field, field.value, "true or false");
}

std::string DocumentReader::read_text(const FileField& field, const FileValue& value) const {
  if (const auto* text = std::get_if<std::string>(&value.content)) return *text;
  throw wrong_kind(field, value, "a text");
}

double DocumentReader::read_number(const FileField& field) const {
  if (const double* number = std::get_if<double>(&field.value.content)) return *number;
  throw wrong_kind(field, field.value, "a number");
}

const FileTable& DocumentReader::read_table(const FileField& field, const FileValue& value,
                                            std::string_view wanted) const {
  if (const auto* table = std::get_if<FileTable>(&value.content)) return *table;
  throw wrong_kind(field, value, wanted);
}

std::string DocumentReader::read_word(const FileField& field, const FileValue& value) const {
  if (const auto* text = std::get_if<std::string>(&value.content)) return *text;
  const double* number = std::get_if<double>(&value.content);
  if (!number) throw wrong_kind(field, value, "a text or a number");
  if (*number != std::floor(*number) || std::abs(*number) > static_cast<double>(kMaxSize))
    throw error(value.at,
                fmt::format("'{}' is {}, which is no whole number up to 2^53", printable(field.name), *number));
  return fmt::format("{}", static_cast<std::int64_t>(*number));
}

std::vector<const FileValue*> DocumentReader::read_list(const FileField& field) const {
  const auto* list = std::get_if<FileList>(&field.value.content);
  if (!list) return {&field.value};
  if (list->empty()) throw error(field.value.at, fmt::format("'{}' is an empty list", printable(field.name)));
  std::vector<const FileValue*> values;
  for (const FileValue& value : *list) values.push_back(&value);
  return values;
}

DocumentText read_document_file(const std::filesystem::path& path, std::string_view what) {
  const std::string name = printable(path.string());
  const std::string extension = path.extension().string();
  if (extension != ".json" && extension != ".toml")
    throw CommandError(ExitCode::input, fmt::format("{}: a {} file is called *.json or *.toml", name, what));
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) throw CommandError(ExitCode::input, fmt::format("{}: it cannot be read: {}", name, error.message()));
  if (bytes > kMostBytes)
    throw CommandError(ExitCode::input, fmt::format("{}: it has {}, more than any {} file", name,
                                                    format_bytes(static_cast<std::int64_t>(bytes)), what));
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) throw CommandError(ExitCode::input, fmt::format("{}: it cannot be read", name));
  return {std::move(text), extension == ".json" ? FileFormat::json : FileFormat::toml};
}

}  // namespace hone::tuner
