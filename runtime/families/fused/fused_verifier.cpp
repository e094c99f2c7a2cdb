#include "runtime/families/fused/fused_verifier.h"

#include <algorithm>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/fused/fused_family.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone {
namespace {

/// The operations whose inputs all are verified on. The order of its factors decides whether a product of floats
/// overflows on the inputs of others.
std::vector<ReduceOp> makers_of_inputs(std::span<const ReduceOp> ops, DType dtype) {
  if (info(dtype).is_floating() && std::find(ops.begin(), ops.end(), ReduceOp::product) != ops.end())
    return {ReduceOp::product};
  return {ops.begin(), ops.end()};
}

bool has_kind(const ReduceSpec& spec, std::string_view kind) {
  const auto kinds = reduce_reference::input_kinds(spec);
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

ReduceSpec fused_member(const Problem& problem, ReduceOp op) {
  return {.op = op, .dtype = problem.dtype, .nan = problem.nan};
}

FusedVerifier::FusedVerifier(const FusedFamily& family) : family_(family) {
  for (const DTypeInfo& dtype : kDTypes) {
    std::vector<std::string_view>& kinds = kinds_[static_cast<std::size_t>(dtype.dtype)];
    for (const ReduceOp op : makers_of_inputs(family.ops(), dtype.dtype)) {
      const ReduceSpec spec{.op = op, .dtype = dtype.dtype};
      for (const std::string_view kind : reduce_reference::input_kinds(spec))
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
}

std::span<const std::string_view> FusedVerifier::input_kinds(const Problem& problem) const {
  return kinds_[static_cast<std::size_t>(problem.dtype)];
}

std::vector<std::byte> FusedVerifier::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  for (const ReduceOp op : makers_of_inputs(family_.ops(), problem.dtype))
    if (has_kind(fused_member(problem, op), kind))
      return reduce_reference::input_pattern(fused_member(problem, op), buffer, problem.extents[0], kind);
  throw Error(ErrorCode::not_found, fmt::format("{} has no inputs of the kind {}", family_.name(), kind));
}

std::string FusedVerifier::verify(const Problem& problem, const Candidate& candidate,
                                  std::span<const std::vector<std::byte>> patterns,
                                  std::span<const std::vector<std::byte>> outputs) const {
  for (std::size_t i = 0; i < family_.ops().size(); ++i) {
    const std::string fault = reduce_reference::verify(fused_member(problem, family_.ops()[i]), problem.extents[0],
                                                       family_.longest_chain(problem, candidate), patterns, outputs[i]);
    if (!fault.empty()) return fmt::format("{}: {}", hone::name(family_.ops()[i]), fault);
  }
  return "";
}

}  // namespace hone
