#include "runtime/families/combine_ranks/canonical_shard.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace hone::canonical {
namespace {

/// The accumulators at the end of a State, behind its count.
bool is_nan_at(const std::byte* bytes, DType accumulator) {
  if (accumulator == DType::f64) {
    double value;
    std::memcpy(&value, bytes, sizeof(value));
    return std::isnan(value);
  }
  float value;
  std::memcpy(&value, bytes, sizeof(value));
  return std::isnan(value);
}

bool are_equal(std::span<const std::byte> found, std::span<const std::byte> expected, DType accumulator) {
  const std::size_t each = info(accumulator).size_bytes, count = expected.size() % each;
  if (std::memcmp(found.data(), expected.data(), count) != 0) return false;
  for (std::size_t at = count; at < expected.size(); at += each)
    if (std::memcmp(&found[at], &expected[at], each) != 0 &&
        !(is_nan_at(&found[at], accumulator) && is_nan_at(&expected[at], accumulator)))
      return false;
  return true;
}

}  // namespace

Sequence Shard::behind(Sequence sequence, std::int64_t elements) const {
  if (sequence.period > 0) sequence.first += elements;
  else sequence.bytes += elements * sequence.stride * static_cast<std::int64_t>(info(spec.dtype).size_bytes);
  return sequence;
}

template <class Visit>
void Shard::for_each_part(std::int64_t row, const Visit& visit) const {
  const std::int64_t head_at = offset % layout.chunk;
  const std::int64_t head = std::min(n, head_at == 0 ? 0 : layout.chunk - head_at);
  const std::int64_t first = (offset + layout.chunk - 1) / layout.chunk, end = first + (n - head) / layout.chunk;
  const Sequence whole_a = behind(a, head), whole_b = behind(b, head);
  const Nodes nodes = nodes_of(spec, whole_a, whole_b, layout.chunk);
  const auto visit_node = [&](std::int64_t side, int level, std::int64_t number) {
    const std::int64_t count = std::int64_t{1} << level;
    visit(((2 * row + side) * layout.levels + level) * layout.state_bytes,
          nodes(number * count - first, count));
  };
  std::int64_t left = first, right = end;
  for (int level = 0; left < right; ++level, left /= 2, right /= 2) {
    if (left % 2 != 0) visit_node(0, level, left++);
    if (left < right && right % 2 != 0) visit_node(1, level, --right);
  }
  const Nodes leaves = layout.edges_are_leaves ? nodes_of(spec, a, b, 1) : Nodes();
  const auto visit_edge = [&](std::int64_t i, std::int64_t number) {
    const std::int64_t where = layout.edges_at + (row * 2 * layout.chunk + number) * layout.edge_bytes;
    if (leaves) return visit(where, leaves(i, 1));
    const std::int64_t at = a.period > 0 ? (a.first + i) % a.period : i * a.stride;
    const std::byte* const element = a.bytes + at * layout.edge_bytes;
    visit(where, std::vector<std::byte>(element, element + layout.edge_bytes));
  };
  for (std::int64_t i = 0; i < head; ++i) visit_edge(i, head_at + i);
  const std::int64_t tail_at = head + (end - first) * layout.chunk;
  for (std::int64_t i = tail_at; i < n; ++i) visit_edge(i, layout.chunk + i - tail_at);
}

void Shard::write(std::span<std::byte> block, std::int64_t row) const {
  for_each_part(row, [&](std::int64_t at, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), block.begin() + at);
  });
}

std::string Shard::compare(std::span<const std::byte> block, std::int64_t row) const {
  std::string wrong;
  for_each_part(row, [&](std::int64_t at, const std::vector<std::byte>& bytes) {
    const auto found = block.subspan(static_cast<std::size_t>(at), bytes.size());
    const bool is_state = layout.edges_are_leaves || at < layout.edges_at;
    const bool is_equal = is_state ? are_equal(found, bytes, spec.accumulator_dtype())
                                   : std::equal(bytes.begin(), bytes.end(), found.begin());
    if (is_equal || !wrong.empty()) return;
    if (at >= layout.edges_at) {
      wrong = fmt::format("row {}: element {} of its cut chunks is not that of the row", row,
                          (at - layout.edges_at) / layout.edge_bytes % (2 * layout.chunk));
    } else {
      const std::int64_t number = at / layout.state_bytes % (2 * layout.levels);
      wrong = fmt::format("row {}: the node of level {} at its {} end is not the reproducible one", row,
                          number % layout.levels, number < layout.levels ? "left" : "right");
    }
  });
  return wrong;
}

}  // namespace hone::canonical
