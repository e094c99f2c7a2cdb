#include "runtime/families/moved_elements.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace hone::moved {
namespace {

constexpr std::int64_t kInputPeriod = 65521;

/// At most this many elements of an output are checked, in this many pieces between the ends.
constexpr std::int64_t kMostChecked = 1 << 18;
constexpr std::int64_t kPieces = 30;
constexpr std::int64_t kPieceElements = kMostChecked / (kPieces + 2);

std::string hex(const std::byte* element, std::size_t bytes) {
  std::string text = "0x";
  for (std::size_t i = bytes; i > 0; --i) text += fmt::format("{:02x}", std::to_integer<unsigned>(element[i - 1]));
  return text;
}

}  // namespace

DType dtype_of_size(std::size_t bytes) {
  return bytes == 1 ? DType::u8 : bytes == 2 ? DType::u16 : bytes == 4 ? DType::u32 : DType::u64;
}

std::string refuse_dtype(std::string_view family, DType dtype) {
  const DType moved = dtype_of_size(info(dtype).size_bytes);
  if (dtype == moved) return "";
  return fmt::format("{} moves elements by their size, whatever they mean: ask for {} instead of {}", family,
                     info(moved).name, info(dtype).name);
}

std::string element_type(DType dtype, bool pairs, std::uint32_t alignment) {
  if (!pairs) return std::string(info(dtype).cuda_name);
  return fmt::format("hone::Wide<{}>", std::max(alignment, std::uint32_t{8}));
}

Pitches pitches_of(const Problem& problem, std::int64_t in_row, std::int64_t out_row) {
  return {problem.pitches[0] == 0 ? in_row : problem.pitches[0],
          problem.pitches[1] == 0 ? out_row : problem.pitches[1]};
}

std::vector<std::byte> input_pattern(std::int64_t elements, DType dtype) {
  const auto count = static_cast<std::size_t>(std::min(elements, kInputPeriod));
  std::vector<std::byte> pattern(count * info(dtype).size_bytes);
  std::mt19937_64 random(7);
  for (std::byte& byte : pattern) byte = static_cast<std::byte>(random() >> 32);
  return pattern;
}

std::vector<ElementRange> spread_parts(std::int64_t elements) {
  if (elements <= kMostChecked) return {{.first = 0, .count = elements}};
  std::vector<ElementRange> parts;
  const std::int64_t stretch = elements / (kPieces + 2);  // at least a piece long
  std::mt19937_64 random(static_cast<std::uint64_t>(elements));
  for (std::int64_t i = 0; i < kPieces + 2; ++i) {
    const auto room = static_cast<std::uint64_t>(stretch - kPieceElements + 1);
    const std::int64_t shift = i == 0 ? 0 : static_cast<std::int64_t>(random() % room);
    parts.push_back({.first = i * stretch + shift, .count = kPieceElements});
  }
  parts.back().first = elements - kPieceElements;
  return parts;
}

std::string verify(const std::vector<ElementRange>& parts, const std::vector<std::byte>& found,
                   const std::vector<std::byte>& pattern, std::size_t element_bytes,
                   const std::function<std::int64_t(std::int64_t)>& source_of) {
  const auto period = static_cast<std::int64_t>(pattern.size() / element_bytes);
  const std::byte* next = found.data();
  std::int64_t wrong = 0;
  std::string first_fault;
  for (const ElementRange& part : parts) {
    for (std::int64_t i = part.first; i < part.first + part.count; ++i, next += element_bytes) {
      const std::int64_t source = source_of(i);
      if (source < 0) continue;
      const std::byte* const expected = pattern.data() + static_cast<std::size_t>(source % period) * element_bytes;
      if (std::memcmp(expected, next, element_bytes) == 0) continue;
      if (wrong++ == 0)
        first_fault = fmt::format("element {} of the output is {}, expected {}, element {} of the input", i,
                                  hex(next, element_bytes), hex(expected, element_bytes), source);
    }
  }
  return wrong == 0 ? "" : fmt::format("{}; {} of those checked are wrong", first_fault, wrong);
}

}  // namespace hone::moved
