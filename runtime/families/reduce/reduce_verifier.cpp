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

/// The operations whose inputs all are verified on. The order of its factors decides whether a product of floats
/// overflows on the inputs of others.
std::vector<ReduceOp> makers_of_inputs(const std::vector<ReduceOp>& ops, DType dtype) {
  if (info(dtype).is_floating() && std::find(ops.begin(), ops.end(), ReduceOp::product) != ops.end())
    return {ReduceOp::product};
  return ops;
}

}  // namespace

std::span<const std::string_view> ReduceInputs::input_kinds(const Problem& problem) const {
  return reduce_reference::input_kinds(reduce_spec_of(problem));
}

std::vector<std::byte> ReduceInputs::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  const std::int64_t elements = problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements;
  return reduce_reference::input_pattern(reduce_spec_of(problem), buffer, elements, kind);
}

std::vector<ElementRange> LinesVerifier::verified_parts(const Problem& problem, int) const {
  std::vector<ElementRange> parts = verified_lines(problem);
  const int values = kReduceOps[problem.operation].outputs;
  for (ElementRange& part : parts) part = {.first = part.first * values, .count = part.count * values};
  return parts;
}

std::string LinesVerifier::verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
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

ReduceSpec fused_member(const Problem& problem, ReduceOp op) {
  return {.op = op, .dtype = problem.dtype, .nan = problem.nan};
}

std::span<const std::string_view> ReduceVerifier::input_kinds(const Problem& problem) const {
  if (fused_.empty()) return ReduceInputs::input_kinds(problem);
  std::vector<std::string_view> kinds;
  for (const ReduceOp op : makers_of_inputs(fused_, problem.dtype))
    for (const std::string_view kind : reduce_reference::input_kinds(fused_member(problem, op)))
      if (!has_kind(kinds, kind)) kinds.push_back(kind);
  return kept_kinds(std::move(kinds));
}

std::vector<std::byte> ReduceVerifier::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  if (fused_.empty()) return ReduceInputs::input_pattern(problem, buffer, kind);
  for (const ReduceOp op : makers_of_inputs(fused_, problem.dtype))
    if (const ReduceSpec spec = fused_member(problem, op); has_kind(reduce_reference::input_kinds(spec), kind))
      return reduce_reference::input_pattern(spec, buffer, problem.extents[0], kind);
  throw Error(ErrorCode::not_found, fmt::format("{} has no inputs of the kind {}", family_.name(), kind));
}

std::string ReduceVerifier::verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                                   ArrayBytes outputs) const {
  const std::int64_t n = problem.extents[0], chain = family_.longest_chain(problem, candidate);
  if (fused_.empty()) return reduce_reference::verify(reduce_spec_of(problem), n, chain, patterns, outputs[0]);
  for (std::size_t i = 0; i < fused_.size(); ++i) {
    const std::string fault =
        reduce_reference::verify(fused_member(problem, fused_[i]), n, chain, patterns, outputs[i]);
    if (!fault.empty()) return fmt::format("{}: {}", name(fused_[i]), fault);
  }
  return "";
}

}  // namespace hone
