/* The part of hone/c.h with softmax, normalisation, transposes and copies. */
#ifndef HONE_C_MATRICES_H
#define HONE_C_MATRICES_H

#include <hone/c/basics.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_softmax_spec {
  size_t size;
  int32_t dtype;       /* f16, bf16, f32 or f64 */
  int32_t result;      /* likewise; −1: dtype */
  int32_t logarithm;   /* 0: softmax; 1: log_softmax */
  int32_t numerics;    /* HONE_NUMERICS_… */
  double scale;        /* multiplies each element first; a magnitude below 2^126, or 2^1022 if one of the two is f64 */
  int64_t outer;       /* outer × reduced × inner elements; results over `reduced` add up to 1. Rows of a matrix: */
  int64_t reduced;     /* outer = rows, reduced = columns, inner = 1 */
  int64_t inner;
  int64_t in_pitch;    /* elements from one row to the next: of `inner`, or of `reduced` where inner is 1; 0: no gap */
  int64_t out_pitch;
} hone_softmax_spec;

/* f32, a scale of 1, and no elements: 0 × 0 × 1. */
HONE_API hone_status hone_softmax_spec_init(hone_softmax_spec* spec, size_t size);

/* `out` may be `in` where elements and results have the same size and pitch. docs/softmax.md. */
HONE_API hone_status hone_softmax(hone_session* session, const hone_softmax_spec* spec, const void* in, void* out,
                                  void* stream, hone_choice* choice);

typedef struct hone_rms_norm_spec {
  size_t size;
  int32_t dtype;      /* of all arrays: f16, bf16 or f32 */
  int32_t reserved;   /* 0 */
  int64_t rows;
  int64_t columns;
  double eps;         /* added to the mean of the squares */
  int64_t in_pitch;   /* elements from one row to the next, of `in` and `residual`; 0: no gap */
  int64_t out_pitch;  /* likewise, of `out` and `sum` */
} hone_rms_norm_spec;

/* f32, 0 × 0, an eps of 1e-6. */
HONE_API hone_status hone_rms_norm_spec_init(hone_rms_norm_spec* spec, size_t size);

/* out = h ÷ √(mean(h²) + eps) · weight for each row h of `in`, or of in + residual, which goes to `sum`. `weight` (one
 * element a column), and `residual` with `sum`, may be NULL. docs/softmax.md. */
HONE_API hone_status hone_rms_norm(hone_session* session, const hone_rms_norm_spec* spec, const void* in,
                                   const void* residual, const void* weight, void* out, void* sum, void* stream,
                                   hone_choice* choice);

/* Matrices of rows × columns elements: of a transpose, `batch` of them; a copy is one. */
typedef struct hone_matrix_spec {
  size_t size;
  size_t element_bytes; /* 1, 2, 4, 8 or 16 */
  int64_t batch;
  int64_t rows;
  int64_t columns;
  int64_t in_pitch;     /* elements from one row of the input to the next; 0: no gap */
  int64_t out_pitch;    /* likewise of the output */
} hone_matrix_spec;

/* One matrix of 4-byte elements, 0 × 0. */
HONE_API hone_status hone_matrix_spec_init(hone_matrix_spec* spec, size_t size);

/* out[b][c][r] = in[b][r][c]; square matrices of equal pitches also in place. docs/transpose.md. */
HONE_API hone_status hone_transpose(hone_session* session, const hone_matrix_spec* spec, const void* in, void* out,
                                    void* stream, hone_choice* choice);

/* out[r][c] = in[r][c]; the batch is 1. */
HONE_API hone_status hone_copy(hone_session* session, const hone_matrix_spec* spec, const void* in, void* out,
                               void* stream, hone_choice* choice);

#ifdef __cplusplus
}
#endif

#endif
