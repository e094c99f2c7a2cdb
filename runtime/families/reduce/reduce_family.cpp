#include <hone/reduce_spec.h>

#include <array>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "runtime/families/reduce/reduce_verifier.h"

namespace hone {
namespace {

constexpr auto kOperations = [] {
  std::array<std::string_view, kReduceOps.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kReduceOps[i].name;
  return names;
}();

/// Instructions of an element that are not hidden behind loads. Fitted to the trials of half of 773 reductions (by
/// operation and dtype; H100, CUDA 13.0, 2026-11-26): the model's first choices for the other half were 3.4 % behind
/// the best in the mean and 27 % at worst, and are 2.3 % and 24 %; for the 773 on an H200 2.2 and 75 %, and 1.6
/// and 26 %.
constexpr double kOfAccumulator = 0.5;
constexpr double kOfIndex = 2;
constexpr double kOfDecoding = 2;  ///< 8-bit floats
constexpr double kOfExponentials = 8;

}  // namespace

ReduceSpec reduce_spec_of(const Problem& problem) {
  return {.op = static_cast<ReduceOp>(problem.operation),
          .dtype = problem.dtype,
          .nan = problem.nan,
          .accumulator = problem.accumulator,
          .result = problem.result,
          .numerics = problem.numerics};
}

std::size_t state_bytes(const ReduceSpec& spec, bool has_wide_index) {
  const ReduceOpInfo& op = info(spec.op);
  const bool is_exact = !info(spec.dtype).is_floating() && info(spec.dtype).size_bytes <= 2;
  if (spec.op == ReduceOp::mean_variance && is_exact) return 24;  // hone::IntegerSums
  const int indices = spec.op == ReduceOp::mean && spec.nan == NanPolicy::ignore ? 1 : op.indices;
  return static_cast<std::size_t>(op.accumulators) * info(spec.accumulator_dtype()).size_bytes +
         static_cast<std::size_t>(indices) * (has_wide_index ? 8 : 4);
}

std::string reduce_arithmetic(const ReduceSpec& spec) {
  const ReduceOpInfo& op = info(spec.op);
  const DTypeInfo &element = info(spec.dtype), &accumulator = info(spec.accumulator_dtype());
  const bool is_small_float = element.is_floating() && element.size_bytes == 1;
  const bool is_double = accumulator.is_floating() && accumulator.size_bytes == 8;
  const bool has_exponentials = op.hazard == ReduceHazard::exponentials;
  return fmt::format("{} arrays of {} bytes{}, {} accumulators{}, {} indices, {} results{}", op.inputs,
                     element.size_bytes, is_small_float ? " to decode" : "", op.accumulators,
                     is_double ? " of f64" : "", op.indices, op.outputs, has_exponentials ? ", exponentials" : "");
}

double reduce_instructions(const ReduceSpec& spec) {
  const ReduceOpInfo& op = info(spec.op);
  const DTypeInfo& element = info(spec.dtype);
  double instructions = kOfAccumulator * op.accumulators + kOfIndex * op.indices;
  if (element.is_floating() && element.size_bytes == 1) instructions += kOfDecoding;
  if (op.hazard == ReduceHazard::exponentials) instructions += kOfExponentials;
  return instructions;
}

std::vector<std::string_view> with_operations(std::vector<std::string_view> kernels) {
  kernels.push_back("widened.cuh");
  for (const ReduceOpInfo& op : kReduceOps) kernels.push_back(op.header);
  return kernels;
}

OperationSource operation_source(const ReduceSpec& spec, bool has_wide_index) {
  const ReduceOpInfo& op = info(spec.op);
  return {.includes = fmt::format("#include \"{}\"\n#include \"widened.cuh\"\n", op.header),
          .type = fmt::format("hone::OperationOn<hone::{}, {}, {}, {}, {}>::type", op.functor,
                              info(spec.dtype).cuda_name, info(spec.accumulator_dtype()).cuda_name,
                              index_type(has_wide_index), spec.nan == NanPolicy::ignore)};
}

FamilyTraits with_reduce_ops(FamilyTraits traits) {
  traits.operations = kOperations;
  traits.kernels = with_operations(std::move(traits.kernels));
  return traits;
}

std::string elements_fault(ReduceOp op, std::int64_t elements) {
  if (elements > 0 || !info(op).needs_elements) return "";
  return fmt::format("no elements have no {}", name(op));
}

std::string dtypes_fault(const ReduceSpec& spec) {
  const auto fault = [&](std::string_view what) {
    return fmt::format("{} of {} {}", name(spec.op), info(spec.dtype).name, what);
  };
  if (!reduce_supports(spec.op, spec.dtype)) {
    std::string supported;
    for (const DTypeInfo& dtype : kDTypes)
      if (reduce_supports(spec.op, dtype.dtype))
        supported += fmt::format("{}{}", supported.empty() ? "" : ", ", dtype.name);
    return fault("is not defined; it takes " + supported);
  }
  if (spec.accumulator && !reduce_accepts_accumulator(spec.op, spec.dtype, *spec.accumulator))
    return fault(fmt::format("cannot be accumulated in {}; its own choice is {}", info(*spec.accumulator).name,
                             info(reduce_accumulator_dtype(spec.op, spec.dtype)).name));
  if (spec.result && !reduce_accepts_result(spec.op, spec.dtype, spec.accumulator_dtype(), *spec.result))
    return fault(fmt::format("cannot be stored as {}; its own choice is {}", info(*spec.result).name,
                             info(reduce_result_dtype(spec.op, spec.dtype, spec.accumulator_dtype())).name));
  return "";
}

namespace {

/// Operations as ReduceOp.
class ReduceFamily final : public ReduceLayoutFamily {
 public:
  ReduceFamily()
      : ReduceLayoutFamily(with_reduce_ops({.name = "reduce",
                                            .version = 2,
                                            .space = ReducePolicy::space(),
                                            .kernels = {"reduce.cuh", "canonical_reduce.cuh"}})) {}

  bool offers_reproducible(const Problem& problem) const override { return reduce_spec_of(problem).is_reproducible(); }
  std::string arithmetic(const Problem& problem) const override { return reduce_arithmetic(reduce_spec_of(problem)); }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const ReduceOpInfo& op = op_of(problem);
    std::vector<BufferSpec> buffers;
    for (int i = 0; i < op.inputs; ++i)
      buffers.push_back(input(op.inputs == 1 ? "in" : i == 0 ? "a" : "b", problem.dtype, problem.extents[0]));
    buffers.push_back(output("out", reduce_spec_of(problem).result_dtype(), op.outputs));
    return buffers;
  }
  const Verifier& verifier() const override { return verifier_; }

  double instructions(const Problem& problem) const override { return reduce_instructions(reduce_spec_of(problem)); }
  int inputs(const Problem& problem) const override { return op_of(problem).inputs; }
  std::size_t partial_bytes(const Problem& problem) const override {
    return state_bytes(reduce_spec_of(problem), needs_wide_index(problem, 0));
  }
  OperationSource operation(const Problem& problem) const override {
    return operation_source(reduce_spec_of(problem), needs_wide_index(problem, 0));
  }

 private:
  std::string fault_of(const Problem& problem) const override {
    const ReduceSpec spec = reduce_spec_of(problem);
    return first_fault({dtypes_fault(spec), elements_fault(spec.op, problem.extents[0]),
                        ReductionFamily::fault_of(problem)});
  }

  ReduceVerifier verifier_{*this};
};

}  // namespace

const KernelFamily& reduce_family() { return the_family<ReduceFamily>(); }

Problem reduce_problem(const ReduceSpec& spec, std::int64_t n, std::uint32_t alignment) {
  Problem problem{.family = &reduce_family(),
                  .operation = static_cast<std::uint8_t>(spec.op),
                  .dtype = spec.dtype,
                  .alignment = info(spec.op).inputs == 1 ? peeled_alignment(spec.dtype, alignment) : alignment,
                  .extents = {n, 1, 1}};
  // An accumulator that the family would choose anyway makes no other problem.
  if (spec.accumulator != reduce_accumulator_dtype(spec.op, spec.dtype)) problem.accumulator = spec.accumulator;
  if (spec.result != reduce_result_dtype(spec.op, spec.dtype, spec.accumulator_dtype())) problem.result = spec.result;
  if (info(spec.dtype).is_floating()) problem.nan = spec.nan;
  if (spec.is_reproducible()) problem.numerics = Numerics::reproducible;
  return problem;
}

ReduceOp parse_reduce_op(std::string_view name) {
  std::string known;
  for (const ReduceOpInfo& op : kReduceOps) {
    if (op.name == name) return op.op;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", op.name);
  }
  throw Error(ErrorCode::not_found, fmt::format("there is no reduction '{}'; there are: {}", name, known));
}

}  // namespace hone
