#include "tuner/array/npy.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/error.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <istream>
#include <limits>
#include <optional>
#include <string>

#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// Headers describe one array in about a hundred bytes; a longer one than this is damage.
constexpr std::uint32_t kMaxHeaderBytes = 1U << 20;

[[noreturn]] void reject(const std::string& what) { throw Error(ErrorCode::io_failed, what); }

/// Reads the Python dict literal of a header: the keys 'descr', 'fortran_order' and 'shape', in any order.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  void parse(NpyHeader& header) {
    expect('{');
    bool has_descr = false, has_order = false, has_shape = false;
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        header.dtype = descr();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = tuple();
        has_shape = true;
      } else {
        malformed(fmt::format("the key '{}' is unknown or there twice", printable(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (position_ != text_.size()) malformed("there is text after the dictionary");
    if (!has_descr || !has_order || !has_shape) malformed("'descr', 'fortran_order' or 'shape' is missing");
  }

 private:
  [[noreturn]] void malformed(const std::string& why) const {
    reject(fmt::format("its .npy header is malformed at byte {}: {}; save the array again with numpy.save", position_,
                       why));
  }

  void skip_blanks() { position_ = std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size()); }

  char peek() {
    skip_blanks();
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) malformed(fmt::format("'{}' was expected", c));
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed("a string was expected");
    const std::size_t begin = ++position_;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) malformed("a string does not end");
    position_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  DType descr() {
    if (peek() == '[')
      reject("its elements are records (a structured dtype); save one field: numpy.save(file, a['x'])");
    const std::string_view text = string();
    for (const DTypeInfo& known : kDTypes) {
      if (known.npy_name == text && !text.empty()) return known.dtype;
    }
    if (text.starts_with('>')) {
      reject(
          fmt::format("its elements are big-endian ('{}'); save them as little-endian: "
                      "numpy.save(file, a.astype('<{}'))",
                      printable(text), printable(text.substr(1))));
    }
    const std::string_view kind = text.substr(std::min(text.find_first_not_of("<=|"), text.size()), 1);
    if (kind == "c") reject("its elements are complex; save a part of them: numpy.save(file, a.real)");
    if (kind == "O") reject("its elements are Python objects; save numbers: numpy.save(file, a.astype('<f4'))");
    if (kind == "U" || kind == "S") reject("its elements are strings, which have no sum; save numbers");
    if (kind == "V")
      reject(fmt::format("its elements are bytes without a type ('{}'), as NumPy saves those of ml_dtypes, such as "
                         "bfloat16; write them raw, a.tofile(file), and give --dtype", printable(text)));
    if (kind == "M" || kind == "m") reject("its elements are times; save integers: numpy.save(file, a.astype('<i8'))");
    reject(
        fmt::format("its elements have the dtype '{}'; Hone reduces <f2, <f4, <f8, booleans and integers: "
                    "numpy.save(file, a.astype('<f4'))",
                    printable(text)));
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{std::string_view{"True"}, true}, {std::string_view{"False"}, false}}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += word.size();
        return value;
      }
    }
    malformed("True or False was expected");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::int64_t extent() {
    if (peek() == '-') malformed("an extent is negative");
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) malformed("an extent is beyond 2^63");
    if (error != std::errc{}) malformed("an extent was expected");
    position_ = static_cast<std::size_t>(end - text_.data());
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // Python 2 wrote 3L
    return value;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

std::string read_bytes(std::istream& in, std::size_t count, std::string_view what) {
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  const auto got = static_cast<std::size_t>(in.gcount());
  if (got != count) {
    reject(fmt::format("it ends inside its .npy {}, after {} of {} bytes: the file is truncated; copy or save it again",
                       what, got, count));
  }
  return bytes;
}

/// The product, nullopt where its bytes would not fit 63 bits. An extent of 0 makes it 0 whatever the others are.
std::optional<std::int64_t> count_elements(const std::vector<std::int64_t>& shape, std::size_t element_bytes) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t elements = 1;
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(element_bytes);
  for (const std::int64_t extent : shape) {
    if (elements > limit / extent) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

}  // namespace

NpyHeader read_npy_header(std::istream& in) {
  const std::string preamble = read_bytes(in, kNpyMagic.size() + 2, "preamble");
  if (!preamble.starts_with(kNpyMagic)) {
    reject(
        "it does not begin with the .npy magic (\\x93NUMPY); for raw elements, name the file otherwise and give "
        "--dtype");
  }
  const int major = static_cast<unsigned char>(preamble[6]);
  const int minor = static_cast<unsigned char>(preamble[7]);
  if (major < 1 || major > 3 || minor != 0) {
    reject(fmt::format("its .npy format version is {}.{}; 1.0, 2.0 and 3.0 are known", major, minor));
  }
  const std::string length_bytes = read_bytes(in, major == 1 ? 2 : 4, "header length");
  std::uint32_t length = 0;
  for (std::size_t i = length_bytes.size(); i-- > 0;)
    length = length << 8U | static_cast<unsigned char>(length_bytes[i]);
  if (length > kMaxHeaderBytes) {
    reject(
        fmt::format("its .npy header claims {} bytes, more than any plain array needs: the file is damaged", length));
  }
  const std::string text = read_bytes(in, length, "header");

  NpyHeader header;
  HeaderParser(text).parse(header);
  header.data_offset = static_cast<std::int64_t>(preamble.size() + length_bytes.size() + text.size());
  const std::optional<std::int64_t> elements = count_elements(header.shape, info(header.dtype).size_bytes);
  if (!elements) reject("the product of its .npy shape overflows 63 bits: the header is damaged");
  header.elements = *elements;
  return header;
}

std::string make_npy_header(DType dtype, std::span<const std::int64_t> shape) {
  if (info(dtype).npy_name.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("NumPy has no {}, so no .npy file can hold it; name the output otherwise for raw elements",
                            info(dtype).name));
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kPreambleBytes = 10;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", info(dtype).npy_name,
                                 npy_shape_text(shape));
  text.append(kAlignment - (kPreambleBytes + text.size() + 1) % kAlignment, ' ').push_back('\n');
  std::string header(kNpyMagic);
  header.append({'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)});
  return header + text;
}

std::string npy_shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

}  // namespace hone::tuner
