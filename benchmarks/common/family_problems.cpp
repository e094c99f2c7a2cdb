#include "benchmarks/common/family_problems.h"

#include <hone/hone.h>

namespace hone::benchmarks {

std::vector<Problem> family_problems(bool is_small) {
  const std::int64_t k = is_small ? 64 : 1;  // divides what is large
  const ReduceSpec sum{.op = ReduceOp::sum}, sum_f16{.op = ReduceOp::sum, .dtype = DType::f16};
  return {
      reduce_problem(sum, (std::int64_t{1} << 20) / k),
      reduce_problem({.op = ReduceOp::max, .dtype = DType::i8}, (std::int64_t{1} << 26) / k),
      reduce_problem({.op = ReduceOp::argmax, .dtype = DType::f16}, (std::int64_t{1} << 23) / k),
      reduce_rows_problem(sum, {.rows = 1000003 / k, .columns = 24}),
      reduce_rows_problem(sum_f16, {.rows = 8191, .columns = 4097 / k}),
      reduce_rows_problem(sum, {.rows = 24, .columns = 3000000 / k}),
      reduce_columns_problem(sum, {.reduced = 8192 / k, .inner = 8192}),
      reduce_columns_problem(sum_f16, {.reduced = 300007 / k, .inner = 100}),
      reduce_columns_problem(sum, {.outer = 1000 / k, .reduced = 100, .inner = 300}),
      segmented_reduce_problem(sum, DType::i32, 1000000 / k, 20000000 / k),
      segmented_reduce_problem(sum, DType::i32, 1000, (std::int64_t{1} << 25) / k),
      segmented_reduce_problem(sum_f16, DType::i64, 1000000 / k, 20000000 / k),
      segmented_reduce_problem(sum_f16, DType::i64, 1000, (std::int64_t{1} << 25) / k),
      softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(8192 / k, 4096)),
      softmax_problem({}, SoftmaxShape::rows(65536 / k, 100)),
      softmax_problem({}, SoftmaxShape::rows(64, (std::int64_t{1} << 20) / k)),
      softmax_problem({}, SoftmaxShape::columns(4096 / k, 4096)),
      softmax_problem({.dtype = DType::f16}, SoftmaxShape::columns(65536 / k, 250)),
      rms_norm_problem({.dtype = DType::f16, .rows = 8192 / k, .columns = 4096}, true, false),
      rms_norm_problem({.dtype = DType::f32, .rows = (std::int64_t{1} << 18) / k, .columns = 64}, true, true),
      transpose_problem({.element_bytes = 4, .rows = 8192 / k, .columns = 8192}),
      transpose_problem({.element_bytes = 2, .rows = 300007 / k, .columns = 100}),
      copy_problem({.element_bytes = 4, .rows = 1, .columns = (std::int64_t{1} << 20) / k}),
      copy_problem({.element_bytes = 2, .rows = 8191 / k, .columns = 4096, .in_pitch = 4160}),
  };
}

}  // namespace hone::benchmarks
