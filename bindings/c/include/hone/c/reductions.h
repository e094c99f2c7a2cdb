/* The part of hone/c.h that reduces arrays. Semantics, dtypes and empty arrays are those of hone::tuned_reduce() and
 * its kin: docs/reductions.md. */
#ifndef HONE_C_REDUCTIONS_H
#define HONE_C_REDUCTIONS_H

#include <hone/c/basics.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HONE_NAN_PROPAGATE = 0, HONE_NAN_IGNORE = 1 };

/* REPRODUCIBLE: the same bits from every policy, grid, alignment and device; FAST: of one winner. docs/numerics.md. */
enum { HONE_NUMERICS_FAST = 0, HONE_NUMERICS_REPRODUCIBLE = 1 };

typedef struct hone_reduce_spec {
  size_t size;
  int32_t op;          /* hone_op("sum") */
  int32_t dtype;       /* of the elements */
  int32_t accumulator; /* −1: the default of the operation and dtype */
  int32_t result;      /* likewise */
  int32_t nan_policy;
  int32_t numerics;    /* HONE_NUMERICS_… */
} hone_reduce_spec;

/* The sum of f32. */
HONE_API hone_status hone_reduce_spec_init(hone_reduce_spec* spec, size_t size);

/* The dtype that a reduction of `spec` writes; −1, and a last error, where there is none. */
HONE_API int32_t hone_result_dtype(const hone_reduce_spec* spec);

/* in[0 … n) to out[0 … outputs). */
HONE_API hone_status hone_reduce(hone_session* session, const hone_reduce_spec* spec, const void* in, int64_t n,
                                 void* out, void* stream, hone_choice* choice);

/* Σ a[i]·b[i]; the operation is "dot". */
HONE_API hone_status hone_dot(hone_session* session, const hone_reduce_spec* spec, const void* a, const void* b,
                              int64_t n, void* out, void* stream, hone_choice* choice);

/* One to eight operations over one array in one pass: ops[i] writes outs[i]. `dtype` is that of the elements. */
HONE_API hone_status hone_reduce_fused(hone_session* session, const int32_t* ops, int32_t count, int32_t dtype,
                                       int32_t nan_policy, const void* in, int64_t n, void* const* outs, void* stream,
                                       hone_choice* choice);

/* Each row of a row-major matrix; `pitch` is the number of elements from one row to the next, 0 for `columns`. */
HONE_API hone_status hone_reduce_rows(hone_session* session, const hone_reduce_spec* spec, const void* in,
                                      int64_t rows, int64_t columns, int64_t pitch, void* out, void* stream,
                                      hone_choice* choice);

/* The middle extent of outer × reduced × inner; `pitch` is that of the rows of `inner`, 0 for `inner`. For the
 * columns of a matrix, outer is 1. */
HONE_API hone_status hone_reduce_columns(hone_session* session, const hone_reduce_spec* spec, const void* in,
                                         int64_t outer, int64_t reduced, int64_t inner, int64_t pitch, void* out,
                                         void* stream, hone_choice* choice);

/* Segment s is in[offsets[s] … offsets[s + 1]); `offsets` are segments + 1 numbers of `offset_dtype`, i32 or i64. */
HONE_API hone_status hone_reduce_segments(hone_session* session, const hone_reduce_spec* spec, const void* in,
                                          int64_t elements, const void* offsets, int32_t offset_dtype,
                                          int64_t segments, void* out, void* stream, hone_choice* choice);

/* A reduction of your own, as CUDA C++ expressions: map(x, i) to the accumulator's type, combine(a, b), and finish(acc,
 * n). Texts are copied; NULL is the default in brackets. docs/reductions.md. */
typedef struct hone_reduction_source {
  size_t size;
  const char* name;         /* letters, digits and underscores; in messages and in the cache */
  const char* map;          /* of element `x` at index `i` ["x"] */
  const char* combine;      /* of `a` and `b`: associative and commutative */
  const char* identity;     /* of `combine` */
  const char* finish;       /* of `acc` and the number of elements `n` ["acc"] */
  const char* declarations; /* functions and types that the expressions use [""] */
  int32_t accumulator;      /* f32, f64, i32, u32, i64 or u64 */
  int32_t result;           /* any dtype; −1: the accumulator's */
  double relative_tolerance; /* of results against the reference; 0: the rounding error of a sum */
} hone_reduction_source;

/* No expressions; f32 for an accumulator. */
HONE_API hone_status hone_reduction_source_init(hone_reduction_source* source, size_t size);

typedef struct hone_reduction hone_reduction;

/* Compiles nothing; expressions that do not compile are HONE_COMPILE_FAILED of the first call. May be used by any
 * number of threads and sessions. hone_reduction_destroy(). */
HONE_API hone_status hone_reduction_create(const hone_reduction_source* source, hone_reduction** reduction);
HONE_API void hone_reduction_destroy(hone_reduction* reduction);

/* finish(combine over all i of map(in[i], i), n) to *out, which is of the result's dtype. */
HONE_API hone_status hone_reduce_custom(hone_session* session, const hone_reduction* reduction, int32_t dtype,
                                        const void* in, int64_t n, void* out, void* stream, hone_choice* choice);

#ifdef __cplusplus
}
#endif

#endif
