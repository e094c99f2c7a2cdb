// ReductionFamily: what all families have in common that launch the templates of reduce.cuh; and what all families of
// reductions ask of an operation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <hone/reduce_spec.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The operation of a kernel, in the words of reduction.cuh.
struct OperationSource {
  std::string includes;  ///< of what `type` needs of kernel_templates or sources()
  std::string type;      ///< a C++ type, with `hone::` before its names
};

/// The alignment that a problem of one array has. An array is peeled up to its first whole pack, so what matters is
/// whether there is anything to peel.
std::uint32_t peeled_alignment(DType dtype, std::uint32_t alignment);

/// Extents {n, 1, 1}; one or two input arrays of n elements each, then the outputs.
class ReductionFamily : public BuiltInFamily {
 public:
  using BuiltInFamily::BuiltInFamily;

  bool is_served_by(const Problem& problem, const Policy& policy, const Unit& unit) const override;

  /// 1, or 2 for operations on pairs. On the hit path: must not allocate.
  virtual int inputs(const Problem&) const { return 1; }

  /// The instructions of an element (WorkShape::instructions_per_byte); 0: not known.
  virtual double instructions(const Problem&) const { return 0; }

  /// Bytes of what one block has found: sizeof of the operation's State. On the hit path, too.
  virtual std::size_t partial_bytes(const Problem& problem) const = 0;

  virtual OperationSource operation(const Problem& problem) const = 0;

  /// The most combinations that one element goes through.
  virtual std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const = 0;

 protected:
  std::string fault_of(const Problem& problem) const override;
};

inline const ReduceOpInfo& op_of(const Problem& problem) { return kReduceOps[problem.operation]; }

/// KernelFamily::arithmetic() of families of reductions: arrays, bytes of an element, accumulators and results.
std::string reduce_arithmetic(const ReduceSpec& spec);

/// The instructions of an element that are not hidden behind loads.
double reduce_instructions(const ReduceSpec& spec);

/// How the kernels spell an operation, with what it is instantiated for. Indices of elements have 32 or 64 bits.
OperationSource operation_source(const ReduceSpec& spec, bool has_wide_index);

/// `kernels` and the templates of all operations.
std::vector<std::string_view> with_operations(std::vector<std::string_view> kernels);

/// sizeof of its State.
std::size_t state_bytes(const ReduceSpec& spec, bool has_wide_index);

/// The traits of a family whose operations are those of kReduceOps.
FamilyTraits with_reduce_ops(FamilyTraits traits);

/// Faults for BuiltInFamily::fault_of(): the operation is not defined for the dtypes of the spec, or needs elements.
std::string dtypes_fault(const ReduceSpec& spec);
std::string elements_fault(ReduceOp op, std::int64_t elements);

}  // namespace hone
