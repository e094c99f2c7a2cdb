#include "runtime/families/fused/fused_family.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <hone/error.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/reduce/reduce_family.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone {
namespace {

static_assert(FusedReduction::kMost <= ReduceArguments::kMostOutputs);

ReduceSpec member(const Problem& problem, ReduceOp op) {
  return {.op = op, .dtype = problem.dtype, .nan = problem.nan};
}

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

[[noreturn]] void refuse_list(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("a fused reduction {}", why));
}

void require_fusible(std::span<const ReduceOp> ops) {
  if (ops.empty()) refuse_list("was asked for without an operation; name at least one");
  if (ops.size() > FusedReduction::kMost)
    refuse_list(fmt::format("was asked for {} operations; at most {} fit", ops.size(), FusedReduction::kMost));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (static_cast<std::size_t>(ops[i]) >= kReduceOps.size())
      refuse_list(fmt::format("was asked for operation {}, and there is none", static_cast<int>(ops[i])));
    if (info(ops[i]).inputs != 1)
      refuse_list(fmt::format("was asked for {}, which takes two arrays; call tuned_dot()", hone::name(ops[i])));
    if (std::find(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(i), ops[i]) !=
        ops.begin() + static_cast<std::ptrdiff_t>(i))
      refuse_list(fmt::format("names {} twice", hone::name(ops[i])));
  }
}

}  // namespace

const FusedFamily& FusedFamily::of(std::span<const ReduceOp> ops) {
  static std::mutex mutex;
  static std::map<std::vector<ReduceOp>, std::unique_ptr<const FusedFamily>> families;
  require_fusible(ops);
  const std::scoped_lock lock(mutex);
  std::unique_ptr<const FusedFamily>& family = families[{ops.begin(), ops.end()}];
  if (!family) family.reset(new FusedFamily({ops.begin(), ops.end()}));
  return *family;
}

FusedFamily::FusedFamily(std::vector<ReduceOp> ops) : ops_(std::move(ops)) {
  for (const ReduceOp op : ops_) joined_ += fmt::format("{}{}", joined_.empty() ? "" : "+", hone::name(op));
  operation_ = joined_;
  for (const DTypeInfo& dtype : kDTypes) {
    std::vector<std::string_view>& kinds = kinds_[static_cast<std::size_t>(dtype.dtype)];
    for (const ReduceOp op : makers_of_inputs(ops_, dtype.dtype)) {
      const ReduceSpec spec{.op = op, .dtype = dtype.dtype};
      for (const std::string_view kind : reduce_reference::input_kinds(spec))
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
}

std::span<const SourceFile> FusedFamily::sources() const {
  static const std::vector<SourceFile> sources = operation_sources({"reduce.cuh", "fused.cuh"});
  return sources;
}

std::string FusedFamily::refuse(const Problem& problem) const {
  if (problem.operation != 0) return fmt::format("{} has no operation {}", name(), problem.operation);
  if (problem.accumulator || problem.result)
    return fmt::format("{} chooses accumulators and results by itself; for others call tuned_reduce() for each",
                       name());
  for (const ReduceOp op : ops_) {
    if (std::string refusal = refuse_dtypes(member(problem, op)); !refusal.empty()) return refusal;
    if (problem.extents[0] == 0 && info(op).needs_elements)
      return fmt::format("{} was asked for the {} of an empty array, which has none", name(), hone::name(op));
  }
  return ReductionFamily::refuse(problem);
}

std::vector<BufferSpec> FusedFamily::buffers(const Problem& problem) const {
  std::vector<BufferSpec> buffers{
      {.name = "in", .is_input = true, .dtype = problem.dtype, .elements = problem.extents[0]}};
  for (const ReduceOp op : ops_)
    buffers.push_back({.name = hone::name(op),
                       .is_input = false,
                       .dtype = member(problem, op).result_dtype(),
                       .elements = info(op).outputs});
  return buffers;
}

std::size_t FusedFamily::partial_bytes(const Problem& problem) const {
  std::size_t bytes = 0;
  for (const ReduceOp op : ops_) bytes += state_bytes(member(problem, op), needs_wide_index(problem) ? 8 : 4);
  return bytes;
}

OperationSource FusedFamily::operation(const Problem& problem) const {
  OperationSource fused{.headers = {"fused.cuh"}, .type = "hone::Fused<"};
  for (const ReduceOp op : ops_) {
    const OperationSource one = operation_source(member(problem, op), index_type(problem));
    fused.headers.insert(fused.headers.end(), one.headers.begin(), one.headers.end());
    fused.type += (op == ops_.front() ? "" : ", ") + one.type;
  }
  fused.type += ">";
  return fused;
}

std::span<const std::string_view> FusedFamily::input_kinds(const Problem& problem) const {
  return kinds_[static_cast<std::size_t>(problem.dtype)];
}

std::vector<std::byte> FusedFamily::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  for (const ReduceOp op : makers_of_inputs(ops_, problem.dtype))
    if (has_kind(member(problem, op), kind))
      return reduce_reference::input_pattern(member(problem, op), buffer, problem.extents[0], kind);
  throw Error(ErrorCode::not_found, fmt::format("{} has no inputs of the kind {}", name(), kind));
}

std::string FusedFamily::verify(const Problem& problem, const Candidate& candidate,
                                std::span<const std::vector<std::byte>> patterns,
                                std::span<const std::vector<std::byte>> outputs) const {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const std::string fault = reduce_reference::verify(member(problem, ops_[i]), problem.extents[0],
                                                       longest_chain(problem, candidate), patterns, outputs[i]);
    if (!fault.empty()) return fmt::format("{}: {}", hone::name(ops_[i]), fault);
  }
  return "";
}

FusedReduction::FusedReduction(std::span<const ReduceOp> ops) : family_(&FusedFamily::of(ops)) {}

std::span<const ReduceOp> FusedReduction::ops() const { return family_->ops(); }

Problem FusedReduction::problem(DType dtype, std::int64_t n, std::uint32_t alignment, NanPolicy nan) const {
  Problem problem{
      .family = family_, .dtype = dtype, .alignment = peeled_alignment(dtype, alignment), .extents = {n, 1, 1}};
  if (info(dtype).is_floating()) problem.nan = nan;
  return problem;
}

}  // namespace hone
