// The reduce_fused family: several reductions of one array in one pass.
#include <hone/fused_reduction.h>

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <hone/error.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/never_destroyed.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "runtime/families/reduce/reduce_verifier.h"

namespace hone {
namespace {

static_assert(FusedReduction::kMost <= ReduceArguments::kMostOutputs);

[[noreturn]] void reject(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("a fused reduction {}", why));
}

void require_fusible(std::span<const ReduceOp> ops) {
  if (ops.empty()) reject("was asked for without an operation; name at least one");
  if (ops.size() > FusedReduction::kMost)
    reject(fmt::format("was asked for {} operations; at most {} fit", ops.size(), FusedReduction::kMost));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (static_cast<std::size_t>(ops[i]) >= kReduceOps.size())
      reject(fmt::format("was asked for operation {}, and there is none", static_cast<int>(ops[i])));
    if (info(ops[i]).inputs != 1)
      reject(fmt::format("was asked for {}, which takes two arrays; call tuned_dot()", hone::name(ops[i])));
    if (std::ranges::count(ops.first(i), ops[i]) > 0) reject(fmt::format("names {} twice", hone::name(ops[i])));
  }
}

}  // namespace

/// One operation, "sum+min+max", which stands for its list.
class FusedFamily final : public ReduceLayoutFamily {
 public:
  explicit FusedFamily(std::vector<ReduceOp> ops)
      : ReduceLayoutFamily({.name = "reduce_fused",
                            .space = ReducePolicy::space(),
                            .operations = {&operation_, 1},
                            .kernels = with_operations({"reduce.cuh"})}),
        ops_(std::move(ops)),
        verifier_(*this, ops_) {
    for (const ReduceOp op : ops_) joined_ += fmt::format("{}{}", joined_.empty() ? "" : "+", hone::name(op));
    operation_ = joined_;
  }

  std::span<const ReduceOp> ops() const { return ops_; }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    std::vector<BufferSpec> buffers{input("in", problem.dtype, problem.extents[0])};
    for (const ReduceOp op : ops_)
      buffers.push_back(output(hone::name(op), fused_member(problem, op).result_dtype(), info(op).outputs));
    return buffers;
  }
  const Verifier& verifier() const override { return verifier_; }

 protected:
  std::string fault_of(const Problem& problem) const override {
    if (problem.accumulator || problem.result)
      return "accumulators and results are the family's choice; for others call tuned_reduce() for each";
    std::string fault = ReductionFamily::fault_of(problem);
    for (const ReduceOp op : ops_)
      fault = first_fault({fault, dtypes_fault(fused_member(problem, op)), elements_fault(op, problem.extents[0])});
    return fault;
  }

  double instructions(const Problem& problem) const override {
    double instructions = 0;
    for (const ReduceOp op : ops_) instructions += reduce_instructions(fused_member(problem, op));
    return instructions;
  }

  std::size_t partial_bytes(const Problem& problem) const override {
    std::size_t bytes = 0;
    for (const ReduceOp op : ops_) bytes += state_bytes(fused_member(problem, op), needs_wide_index(problem, 0));
    return bytes;
  }

  OperationSource operation(const Problem& problem) const override {
    OperationSource fused{.includes = "#include \"reduction.cuh\"\n", .type = "hone::Fused<"};
    for (const ReduceOp op : ops_) {
      const OperationSource one = operation_source(fused_member(problem, op), needs_wide_index(problem, 0));
      fused.includes += one.includes;
      fused.type += (op == ops_.front() ? "" : ", ") + one.type;
    }
    fused.type += ">";
    return fused;
  }

 private:
  std::vector<ReduceOp> ops_;
  std::string joined_;
  std::string_view operation_;
  ReduceVerifier verifier_;
};

FusedReduction::FusedReduction(std::span<const ReduceOp> ops) {
  // Families are made when they are first asked for, and then kept.
  static std::mutex mutex;
  static auto& families = never_destroyed<std::map<std::vector<ReduceOp>, FusedFamily>>();
  require_fusible(ops);
  const std::vector<ReduceOp> list(ops.begin(), ops.end());
  const std::scoped_lock lock(mutex);
  family_ = &families.try_emplace(list, list).first->second;
}

std::span<const ReduceOp> FusedReduction::ops() const { return family_->ops(); }

Problem FusedReduction::problem(DType dtype, std::int64_t n, std::uint32_t alignment, NanPolicy nan) const {
  Problem problem{
      .family = family_, .dtype = dtype, .alignment = peeled_alignment(dtype, alignment), .extents = {n, 1, 1}};
  if (info(dtype).is_floating()) problem.nan = nan;
  return problem;
}

}  // namespace hone
