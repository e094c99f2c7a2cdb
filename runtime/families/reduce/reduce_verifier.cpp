#include "runtime/families/reduce/reduce_verifier.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/reduce/reduce_reference.h"

namespace hone {
namespace {

bool has_kind(std::span<const std::string_view> kinds, std::string_view kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// The reductions whose inputs all are verified on. The order of its factors decides whether a product of floats
/// overflows on the inputs of others.
std::vector<ReduceSpec> makers_of_inputs(const std::vector<ReduceSpec>& members) {
  for (const ReduceSpec& spec : members)
    if (spec.op == ReduceOp::product && info(spec.dtype).is_floating()) return {spec};
  return members;
}

}  // namespace

std::string LinesFamily::fault_of(const Problem& problem) const {
  if (op_of(problem).inputs != 1) return "two arrays are reduced as a whole only; call tuned_dot()";
  return dtypes_fault(reduce_spec_of(problem));
}

std::vector<ElementRange> LinesFamily::verified_parts(const Problem& problem, int) const {
  std::vector<ElementRange> parts = verified_lines(problem);
  const int values = op_of(problem).outputs;
  for (ElementRange& part : parts) part = {.first = part.first * values, .count = part.count * values};
  return parts;
}

std::string LinesFamily::verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                                  ArrayBytes outputs) const {
  const ReduceSpec spec = reduce_spec_of(problem);
  const std::int64_t chain = longest_chain(problem, candidate);
  const std::function<Line(std::int64_t)> line_of = lines(problem, patterns);
  const std::size_t bytes = info(spec.dtype).size_bytes;
  const std::size_t result_bytes =
      info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
  const auto period = static_cast<std::int64_t>(patterns[0].size() / bytes);
  std::span<const std::byte> output = outputs[0];
  std::vector<std::vector<std::byte>> elements(1);
  for (const ElementRange& part : verified_lines(problem)) {
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      const Line line = line_of(i);
      // As many as differ from those before: the pattern of this result, which begins where the result does.
      elements[0].resize(static_cast<std::size_t>(std::min(line.elements, period)) * bytes);
      std::int64_t at = period == 0 ? 0 : line.first % period;
      for (std::size_t to = 0; to < elements[0].size(); to += bytes) {
        std::memcpy(elements[0].data() + to, patterns[0].data() + static_cast<std::size_t>(at) * bytes, bytes);
        at = (at + line.stride) % period;
      }
      const std::string fault =
          reduce_reference::verify(spec, line.elements, chain, elements, output.first(result_bytes));
      if (!fault.empty())
        return fmt::format("result {} of the {} elements from {} on: {}", i, line.elements, line.first, fault);
      output = output.subspan(result_bytes);
    }
  }
  return "";
}

std::span<const std::string_view> LinesFamily::input_kinds(const Problem& problem) const {
  return reduce_reference::input_kinds(reduce_spec_of(problem));
}

std::vector<std::byte> LinesFamily::input_pattern(const Problem& problem, int, std::string_view kind) const {
  return reduce_reference::input_pattern(reduce_spec_of(problem), 0, buffers(problem)[0].elements, kind);
}

ReduceSpec fused_member(const Problem& problem, ReduceOp op) {
  return {.op = op, .dtype = problem.dtype, .nan = problem.nan};
}

std::vector<ReduceSpec> ReduceVerifier::members(const Problem& problem) const {
  std::vector<ReduceSpec> specs;
  for (const ReduceOp op : fused_) specs.push_back(fused_member(problem, op));
  return specs.empty() ? std::vector{reduce_spec_of(problem)} : specs;
}

std::span<const std::string_view> ReduceVerifier::input_kinds(const Problem& problem) const {
  std::vector<std::string_view> kinds;
  for (const ReduceSpec& spec : makers_of_inputs(members(problem)))
    for (const std::string_view kind : reduce_reference::input_kinds(spec))
      if (!has_kind(kinds, kind)) kinds.push_back(kind);
  return kept_kinds(std::move(kinds));
}

std::vector<std::byte> ReduceVerifier::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  for (const ReduceSpec& spec : makers_of_inputs(members(problem)))
    if (has_kind(reduce_reference::input_kinds(spec), kind))
      return reduce_reference::input_pattern(spec, buffer, problem.extents[0], kind);
  throw Error(ErrorCode::not_found, fmt::format("{} has no inputs of the kind {}", family_.name(), kind));
}

std::string ReduceVerifier::verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                                   ArrayBytes outputs) const {
  const std::int64_t n = problem.extents[0], chain = family_.longest_chain(problem, candidate);
  const std::vector<ReduceSpec> specs = members(problem);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string fault = reduce_reference::verify(specs[i], n, chain, patterns, outputs[i]);
    if (!fault.empty()) return fused_.empty() ? fault : fmt::format("{}: {}", name(specs[i].op), fault);
  }
  return "";
}

}  // namespace hone
