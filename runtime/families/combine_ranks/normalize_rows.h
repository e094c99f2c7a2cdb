// The family that turns rows into shares of their softmax, once the sums of their exponentials are known.
#pragma once

#include <hone/softmax_spec.h>

namespace hone {

/// Its extents are {rows, columns, 1}, its operations softmax and log_softmax, its buffers {in, norms[rows], out}: the
/// logarithms of sums of exponentials, in the accumulator's dtype. With reproducible numerics they are {in,
/// origins[rows], sums[rows], out}: the largest elements (the smallest, if the scale is negative), in the dtype of
/// elements, and the sums of weights.
const KernelFamily& normalize_rows_family();

/// `alignment`: of both arrays, in bytes.
Problem normalize_rows_problem(const SoftmaxSpec& spec, bool is_logarithm, const SoftmaxShape& shape,
                               std::uint32_t alignment = kMaxAlignment);
Problem canonical_normalize_problem(const SoftmaxSpec& spec, bool is_logarithm, const SoftmaxShape& shape,
                                    std::uint32_t alignment = kMaxAlignment);

}  // namespace hone
