#include "tuner/text/document.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#ifdef HONE_WITH_TOML
#include <toml++/toml.h>
#endif

#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// How deep lists and tables may lie in each other: what reads them calls itself.
constexpr std::size_t kMostDepth = 32;
constexpr std::string_view kTooDeep = "lists and tables lie too deep in each other";

FilePosition position_of(std::string_view text, std::size_t offset) {
  FilePosition at;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++at.column;  // the bytes after the first of a character in UTF-8 are 10xxxxxx
    }
  }
  return at;
}

/// Numbers of a document are doubles. An integer that none of them is must not silently become its neighbour.
template <std::integral Integer>
double number_of(Integer value, std::string_view name, FilePosition at) {
  const auto number = static_cast<double>(value);
  const std::uint64_t magnitude = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const int digits = static_cast<int>(std::bit_width(magnitude)) - std::countr_zero(magnitude);
  if (digits <= std::numeric_limits<double>::digits) return number;
  throw error_at(name, at, fmt::format("{} would become {:.0f}; whole numbers are exact up to 2^53", value, number));
}

/// Lets the parser read a text, and tells how far it is: nlohmann's SAX events carry no position of their own.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

/// Builds the document from the events of nlohmann's parser.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonReader(std::string_view text, std::string_view name) : text_(text), name_(name), furthest_(text.data()) {}

  FileValue read() {
    const CountingIterator begin(text_.data(), &furthest_);
    const CountingIterator end(text_.data() + text_.size(), &furthest_);
    nlohmann::json::sax_parse(begin, end, this);
    return std::move(root_);
  }

  bool null() override {
    throw error_at(name_, position_of(text_, offset() - 4), "null means nothing here; leave the field out");
  }
  bool boolean(bool value) override { return add(value, offset() - (value ? 4 : 5)); }
  bool number_integer(number_integer_t value) override { return add_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return add_integer(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value, number_begin()); }
  bool string(string_t& value) override { return add(value, string_begin()); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(FileTable{}); }
  bool start_array(std::size_t) override { return open(FileList{}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const FilePosition at = position_of(text_, string_begin());
    FileTable& table = std::get<FileTable>(open_.back()->content);
    for (const FileField& field : table)
      if (field.name == name)
        throw error_at(name_, at, fmt::format("'{}' is given twice, first in line {}", printable(name), field.at.line));
    table.push_back({name, at, {}});
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what was expected"
    const std::string_view what = error.what();
    const std::size_t column = what.find(", column ");
    const std::size_t message = column == std::string_view::npos ? column : what.find(": ", column);
    throw error_at(name_, position_of(text_, offset() > 0 ? offset() - 1 : 0),
                   message == std::string_view::npos ? what : what.substr(message + 2));
  }

 private:
  std::size_t offset() const { return static_cast<std::size_t>(furthest_ - text_.data()); }

  /// Where the string that ends before offset() begins: at the last quote in front of it that no backslash escapes.
  std::size_t string_begin() const {
    std::size_t begin = offset() - 1;
    while (begin > 0) {
      if (text_[--begin] != '"') continue;
      std::size_t backslashes = 0;
      while (backslashes < begin && text_[begin - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) break;
    }
    return begin;
  }

  /// The parser has read the character behind the number, unless the text ends there.
  std::size_t number_begin() const {
    const auto is_part = [&](std::size_t at) {
      return std::string_view("0123456789+-.eE").find(text_[at]) != std::string_view::npos;
    };
    std::size_t begin = offset();
    if (begin > 0 && !is_part(begin - 1)) --begin;
    while (begin > 0 && is_part(begin - 1)) --begin;
    return begin;
  }

  template <class Integer>
  bool add_integer(Integer value) {
    const std::size_t begin = number_begin();
    return add(number_of(value, name_, position_of(text_, begin)), begin);
  }

  template <class T>
  bool add(T value, std::size_t begin) {
    place() = {position_of(text_, begin), std::move(value)};
    return true;
  }

  template <class Container>
  bool open(Container container) {
    const FilePosition at = position_of(text_, offset() - 1);
    if (open_.size() == kMostDepth) throw error_at(name_, at, kTooDeep);
    FileValue& value = place();
    value = {at, std::move(container)};
    open_.push_back(&value);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Returns the place of the next value. It stays valid while it is open: its parent gets no other children meanwhile.
  FileValue& place() {
    if (open_.empty()) return root_;
    if (auto* list = std::get_if<FileList>(&open_.back()->content)) return list->emplace_back();
    return std::get<FileTable>(open_.back()->content).back().value;
  }

  std::string_view text_;
  std::string_view name_;
  const char* furthest_;
  FileValue root_;
  std::vector<FileValue*> open_;
};

#ifdef HONE_WITH_TOML
FilePosition position_of(const toml::source_position& position) {
  return {static_cast<int>(position.line), static_cast<int>(position.column)};
}

/// The end of the string whose quotes begin there, or of its line if nothing else ends it.
std::size_t string_end(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const bool is_long = text.substr(begin).starts_with(std::string(3, quote));
  const std::string_view quotes = text.substr(begin, is_long ? 3 : 1);
  std::size_t at = begin + quotes.size();
  while (at < text.size() && !text.substr(at).starts_with(quotes) && (is_long || text[at] != '\n'))
    at += quote == '"' && text[at] == '\\' ? 2 : 1;
  at = std::min(at + quotes.size(), text.size());
  while (is_long && at < text.size() && text[at] == quote) ++at;  // two quotes may stand before those that end it
  return at;
}

/// The library makes a table for each part of a dotted key, and calls itself for each of them.
void refuse_deep_keys(std::string_view text, std::string_view name) {
  constexpr std::string_view kNoParts = "\n\r=,[]{}";
  std::size_t dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = string_end(text, at);
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else {
      if (c == '.' && ++dots == kMostDepth) throw error_at(name, position_of(text, at), kTooDeep);
      if (kNoParts.find(c) != std::string_view::npos) dots = 0;
      ++at;
    }
  }
}

/// `depth`: how many lists and tables the node lies in.
FileValue convert(const toml::node& node, std::string_view name, std::size_t depth = 0) {
  const FilePosition at = position_of(node.source().begin);
  if (const auto* text = node.as_string()) return {at, text->get()};
  if (const auto* number = node.as_integer()) return {at, number_of(number->get(), name, at)};
  if (const auto* number = node.as_floating_point()) return {at, number->get()};
  if (const auto* flag = node.as_boolean()) return {at, flag->get()};
  if (depth == kMostDepth && (node.is_array() || node.is_table())) throw error_at(name, at, kTooDeep);
  if (const auto* array = node.as_array()) {
    FileList list;
    for (const toml::node& element : *array) list.push_back(convert(element, name, depth + 1));
    return {at, std::move(list)};
  }
  if (const auto* table = node.as_table()) {
    FileTable fields;
    for (const auto& [key, value] : *table)
      fields.push_back({std::string(key.str()), position_of(key.source().begin), convert(value, name, depth + 1)});
    // The library orders them by their names; whoever reads them says first what is wrong first.
    std::sort(fields.begin(), fields.end(), [](const FileField& a, const FileField& b) {
      return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
    });
    return {at, std::move(fields)};
  }
  throw error_at(name, at, "dates and times mean nothing here");
}

FileValue read_toml(std::string_view text, std::string_view name) {
  refuse_deep_keys(text, name);
  try {
    return convert(toml::parse(text), name);
  } catch (const toml::parse_error& error) {
    throw error_at(name, position_of(error.source().begin), error.description());
  }
}
#else
FileValue read_toml(std::string_view, std::string_view name) {
  throw CommandError(ExitCode::input,
                     fmt::format("{}: this hone was built without toml++ and reads JSON alone", name));
}
#endif

}  // namespace

std::string_view kind_of(const FileValue& value) {
  constexpr std::array<std::string_view, 5> kKinds{"a text", "a number", "true or false", "a list", "a table"};
  return kKinds[value.content.index()];
}

CommandError error_at(std::string_view name, FilePosition at, std::string_view message) {
  return CommandError(ExitCode::input, fmt::format("{}:{}:{}: {}", name, at.line, at.column, message));
}

FileTable read_document(std::string_view text, FileFormat format, std::string_view name) {
  FileValue root = format == FileFormat::json ? JsonReader(text, name).read() : read_toml(text, name);
  if (auto* table = std::get_if<FileTable>(&root.content)) return std::move(*table);
  throw error_at(name, root.at, fmt::format("the file is a table of fields, and this is {}", kind_of(root)));
}

}  // namespace hone::tuner
