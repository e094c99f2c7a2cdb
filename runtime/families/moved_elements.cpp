#include "runtime/families/moved_elements.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/families/counts.h"

namespace hone::moved {
namespace {

/// At most this many elements of an output are checked, in this many pieces.
constexpr std::int64_t kMostChecked = 1 << 18;
constexpr std::int64_t kPieces = 32;

std::string hex(const std::byte* element, std::size_t bytes) {
  std::string text = "0x";
  for (std::size_t i = bytes; i > 0; --i) text += fmt::format("{:02x}", std::to_integer<unsigned>(element[i - 1]));
  return text;
}

}  // namespace

DType dtype_of_size(std::size_t bytes) {
  return bytes == 1 ? DType::u8 : bytes == 2 ? DType::u16 : bytes == 4 ? DType::u32 : DType::u64;
}

std::string MovedFamily::fault_of(const Problem& problem) const {
  const DType moved = dtype_of_size(info(problem.dtype).size_bytes);
  if (problem.dtype != moved)
    return fmt::format("elements are moved by their size, whatever they mean: ask for {} instead of {}",
                       info(moved).name, info(problem.dtype).name);
  if (problem.accumulator || problem.result) return "nothing is accumulated, and the type of the elements is kept";
  if (problem.nan != NanPolicy::propagate) return "elements are moved, NaNs with the others";
  if (std::ranges::min(problem.extents) < 1) return "every extent must be at least 1";
  return "";
}

std::int64_t MovedFamily::bytes_moved(const Problem& problem) const {
  const Rows in = rows(problem, 0);
  return 2 * in.batch * in.rows * in.length * in.parts * element_bytes(problem);
}

std::vector<BufferSpec> MovedFamily::buffers(const Problem& problem) const {
  BufferSpec out = output("out", problem.dtype, rows(problem, 1).elements(), problem.alignment);
  out.in_place_of = is_in_place(problem) ? 0 : -1;
  return {input("in", problem.dtype, rows(problem, 0).elements()), out};
}

std::vector<ElementRange> MovedFamily::verified_parts(const Problem& problem, int buffer) const {
  return spread_runs(rows(problem, buffer).elements(), kMostChecked / kPieces, kPieces);
}

std::string MovedFamily::verify(const Problem& problem, const Candidate&, ArrayBytes patterns,
                                ArrayBytes outputs) const {
  const auto bytes = static_cast<std::size_t>(element_bytes(problem));
  const auto period = static_cast<std::int64_t>(patterns[0].size() / bytes);
  const std::byte* next = outputs[0].data();
  std::int64_t wrong = 0;
  std::string first_fault;
  for (const ElementRange& part : verified_parts(problem, 1)) {
    for (std::int64_t i = part.first; i < part.first + part.count; ++i, next += bytes) {
      const std::int64_t source = source_of(problem, i);
      if (source < 0) continue;
      const std::byte* const expected = patterns[0].data() + static_cast<std::size_t>(source % period) * bytes;
      if (std::memcmp(expected, next, bytes) == 0) continue;
      if (wrong++ == 0)
        first_fault = fmt::format("element {} of the output is {}, expected {}, element {} of the input", i,
                                  hex(next, bytes), hex(expected, bytes), source);
    }
  }
  return wrong == 0 ? "" : fmt::format("{}; {} of those checked are wrong", first_fault, wrong);
}

}  // namespace hone::moved
