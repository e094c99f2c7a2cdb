/* The part of hone/c.h that looks ahead of the call. A problem describes a call without its pointers. `alignment` is
 * what all of its pointers are aligned to, in bytes: a power of two, 16 for the widest. Each is destroyed by
 * hone_problem_destroy(). */
#ifndef HONE_C_PROBLEMS_H
#define HONE_C_PROBLEMS_H

#include <hone/c/kernels.h>
#include <hone/c/matrices.h>
#include <hone/c/reductions.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_problem hone_problem;

HONE_API hone_status hone_problem_reduce(const hone_reduce_spec* spec, int64_t n, uint32_t alignment,
                                         hone_problem** problem);
HONE_API hone_status hone_problem_reduce_rows(const hone_reduce_spec* spec, int64_t rows, int64_t columns,
                                              int64_t pitch, uint32_t alignment, hone_problem** problem);
HONE_API hone_status hone_problem_reduce_columns(const hone_reduce_spec* spec, int64_t outer, int64_t reduced,
                                                 int64_t inner, int64_t pitch, uint32_t alignment,
                                                 hone_problem** problem);
HONE_API hone_status hone_problem_reduce_segments(const hone_reduce_spec* spec, int64_t elements,
                                                  int32_t offset_dtype, int64_t segments, hone_problem** problem);
HONE_API hone_status hone_problem_reduce_fused(const int32_t* ops, int32_t count, int32_t dtype, int32_t nan_policy,
                                               int64_t n, uint32_t alignment, hone_problem** problem);
HONE_API hone_status hone_problem_reduce_custom(const hone_reduction* reduction, int32_t dtype, int64_t n,
                                                uint32_t alignment, hone_problem** problem);
HONE_API hone_status hone_problem_rms_norm(const hone_rms_norm_spec* spec, int32_t has_weight, int32_t has_residual,
                                           uint32_t alignment, hone_problem** problem);
HONE_API hone_status hone_problem_softmax(const hone_softmax_spec* spec, uint32_t alignment, hone_problem** problem);
HONE_API hone_status hone_problem_transpose(const hone_matrix_spec* spec, uint32_t alignment, int32_t in_place,
                                            hone_problem** problem);
HONE_API hone_status hone_problem_copy(const hone_matrix_spec* spec, uint32_t alignment, hone_problem** problem);
HONE_API hone_status hone_problem_kernel(const hone_kernel* kernel, const int64_t* extents, int32_t extent_count,
                                         uint32_t alignment, hone_problem** problem);
HONE_API void hone_problem_destroy(hone_problem* problem);

/* Calls that are captured into a graph are a problem of their own: 1 makes it that, 0 that of a stream. */
HONE_API hone_status hone_problem_set_graph(hone_problem* problem, int32_t is_graph);

/* "reduce sum f32 n=1048576". hone_free(). */
HONE_API hone_status hone_problem_text(const hone_problem* problem, char** text);

/* Makes sure that calls of the problem will hit, without launching. */
HONE_API hone_status hone_prepare(hone_session* session, const hone_problem* problem, hone_choice* choice);

/* Tunes now, for up to `budget_ms`, whatever is known already; stores the winner and dispatches later calls to it.
 * `json`, where it is not NULL, gets the tuning: every candidate, predicted and measured, its verdict and the reason.
 * hone_free(). */
HONE_API hone_status hone_tune(hone_session* session, const hone_problem* problem, int64_t budget_ms, char** json);

/* The progress of a tuning, called from the thread that tunes. `phase` is 0 while it compiles, 1 while it measures, and
 * 2 while it verifies; `done` of `total` counts the steps of the phase; `best_us` is 0 before the first measurement. A
 * result other than 0 ends the tuning early, without a winner, after at most some more calls. It must not call the
 * session: what would wait for the tuning is refused. */
typedef int32_t (*hone_progress)(void* context, int32_t phase, int32_t done, int32_t total, double best_us);

/* hone_tune() that reports its progress; `progress` may be NULL. */
HONE_API hone_status hone_tune_with_progress(hone_session* session, const hone_problem* problem, int64_t budget_ms,
                                             hone_progress progress, void* context, char** json);

/* The tuning that is stored for the problem, as hone_tune() gave it, but for its roofline and rank correlation; `null`
 * where the cache files have none. Reads them; launches and compiles nothing. hone_free(). */
HONE_API hone_status hone_stored_tuning(const hone_session* session, const hone_problem* problem, char** json);

#ifdef __cplusplus
}
#endif

#endif
