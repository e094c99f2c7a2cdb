#include "runtime/families/segmented_reduce/segment_reference.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/segmented_reduce/segment_offsets.h"

namespace hone::segment_reference {
namespace {

/// "power_law" and the like with what the reductions measure, and the awkward elements in segments of a power law.
struct InputKind {
  std::string_view lengths;
  std::string_view elements;

  InputKind(const ReduceSpec& spec, std::string_view kind) {
    const auto all = segment_offsets::kinds();
    const bool is_of_lengths = std::find(all.begin(), all.end(), kind) != all.end();
    lengths = is_of_lengths ? kind : all.front();
    elements = is_of_lengths ? reduce_reference::input_kinds(spec).front() : kind;
  }
};

std::vector<std::string_view> kinds_of(const ReduceSpec& spec) {
  const auto lengths = segment_offsets::kinds();
  std::vector<std::string_view> kinds(lengths.begin(), lengths.end());
  const auto elements = reduce_reference::input_kinds(spec).subspan(1);
  kinds.insert(kinds.end(), elements.begin(), elements.end());
  return kinds;
}

}  // namespace

std::span<const std::string_view> input_kinds(const ReduceSpec& spec) {
  // The kinds of elements are lists that live for ever; there is one of ours for each.
  static const auto lists = [] {
    std::map<const std::string_view*, std::vector<std::string_view>> kinds;
    for (const ReduceOpInfo& op : kReduceOps)
      for (const DTypeInfo& dtype : kDTypes)
        for (const DType accumulator : {reduce_accumulator_dtype(op.op, dtype.dtype), DType::f64}) {
          const ReduceSpec each{.op = op.op, .dtype = dtype.dtype, .accumulator = accumulator};
          kinds.try_emplace(reduce_reference::input_kinds(each).data(), kinds_of(each));
        }
    return kinds;
  }();
  return lists.at(reduce_reference::input_kinds(spec).data());
}

std::vector<std::byte> input_pattern(const ReduceSpec& spec, const Arrays& arrays, int buffer, std::string_view kind) {
  const InputKind input(spec, kind);
  if (buffer == 0) return reduce_reference::input_pattern(spec, 0, arrays.elements, input.elements);
  return segment_offsets::make(input.lengths, arrays.offsets, arrays.segments, arrays.elements);
}

std::string verify(const ReduceSpec& spec, const Arrays& arrays, std::int64_t chain,
                   std::span<const std::vector<std::byte>> patterns, std::span<const std::byte> output) {
  const segment_offsets::Offsets offsets(arrays.offsets, patterns[1]);
  const std::size_t element = info(spec.dtype).size_bytes;
  const std::size_t result = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
  const std::vector<std::byte>& pattern = patterns[0];
  const auto period = static_cast<std::int64_t>(pattern.size() / element);
  std::vector<std::vector<std::byte>> of_segment(1);
  for (const ElementRange& part : segment_offsets::verified(arrays.segments, arrays.elements)) {
    for (std::int64_t s = part.first; s < part.first + part.count; ++s) {
      // The reference wants a pattern that begins where the segment does.
      const std::int64_t n = offsets[s + 1] - offsets[s];
      std::vector<std::byte>& rotated = of_segment[0];
      rotated.clear();
      for (std::int64_t left = std::min(n, period), at = offsets[s]; left > 0;) {
        const auto from = pattern.begin() + at % period * static_cast<std::int64_t>(element);
        const std::int64_t count = std::min(left, period - at % period);
        rotated.insert(rotated.end(), from, from + count * static_cast<std::int64_t>(element));
        left -= count;
        at += count;
      }
      const std::string fault = reduce_reference::verify(spec, n, chain, of_segment, output.first(result));
      if (!fault.empty())
        return fmt::format("segment {} of {} elements from {} on: {}", s, n, offsets[s], fault);
      output = output.subspan(result);
    }
  }
  return "";
}

}  // namespace hone::segment_reference
