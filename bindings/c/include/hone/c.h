/* Hone for C, and for every language that calls C: tuned reductions, softmax, transposes and copies in device memory.
 *
 *   hone_device* device = NULL;
 *   hone_session* session = NULL;
 *   if (hone_device_open("auto", &device) || hone_session_create(device, NULL, &session)) puts(hone_last_error());
 *   hone_reduce_spec spec;
 *   hone_reduce_spec_init(&spec, sizeof spec);
 *   spec.op = hone_op("sum");
 *   spec.dtype = hone_dtype("f32");
 *   hone_reduce(session, &spec, in, n, out, stream, NULL);
 *
 * Status: every function that can fail returns a hone_status, 0 for success. hone_last_error() then has the message,
 * which names what was asked, what was found and what to do. No exception and no signal crosses this interface.
 *
 * Pointers: `in` and `out` are in memory of the session's device. `stream` is a cudaStream_t, NULL for the default
 * stream; the host device takes any value and has executed a call when it returns. Calls enqueue, and neither wait
 * nor allocate on the stream, but for a miss under HONE_ON_MISS_TUNE. In a stream under capture nothing is tuned.
 *
 * Ownership: what a function gives through a pointer to a handle is destroyed by the function named beside it; a text
 * given through char** is freed with hone_free(). A device outlives its sessions: a session keeps it alive.
 *
 * Threads: sessions, devices and problems may be used by any number of threads at once, as long as none destroys
 * them. The last error belongs to the thread.
 *
 * Structs: every struct begins with its size and is filled by its init function, which writes the defaults of the
 * library that runs. A program that was compiled with an older header keeps working: what it does not know has its
 * default. A size that is larger than the library's is refused.
 */
#ifndef HONE_C_H
#define HONE_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(HONE_C_BUILD)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t hone_status;

enum {
  HONE_OK = 0,
  HONE_INVALID_ARGUMENT = 1, /* something that has no meaning: a null pointer, a negative size */
  HONE_UNSUPPORTED = 2,      /* well formed, but this build or device cannot do it */
  HONE_NOT_FOUND = 3,        /* no device, operation or dtype of that name */
  HONE_COMPILE_FAILED = 4,   /* the message carries the compiler's log */
  HONE_DEVICE_FAILED = 5,    /* the driver, or the checked host device, reported a failure */
  HONE_OUT_OF_MEMORY = 6,
  HONE_CACHE_FAILED = 7,
  HONE_IO_FAILED = 8,
  HONE_NOT_TUNED = 9,        /* HONE_ON_MISS_ERROR, and no winner serves the problem */
  HONE_DEVICE_LOST = 10,     /* nothing runs on the device any more: start a new process */
  HONE_INTERNAL = 11         /* a defect of the library: please report the message */
};

/* The message of the calling thread's last failure; "" before the first. Valid until this thread's next failure. */
HONE_API const char* hone_last_error(void);

/* "HONE_INVALID_ARGUMENT"; "unknown status" for any other number. Lives forever. */
HONE_API const char* hone_status_name(hone_status status);

/* "0.1.0". Lives forever. */
HONE_API const char* hone_version(void);

/* Frees a text that the library gave. NULL is fine. */
HONE_API void hone_free(char* text);

/* --- Names and numbers -------------------------------------------------------------------------------------------
 * The number of an operation of reductions ("sum", "argmax", …) or of a dtype ("f32", "bf16", …). Numbers stay the
 * same in all versions, so they may be stored. −1 for an unknown name: hone_last_error() lists the known ones. */
HONE_API int32_t hone_op(const char* name);
HONE_API int32_t hone_dtype(const char* name);

/* The name of a number; NULL for a number that has none. Lives forever. */
HONE_API const char* hone_op_name(int32_t op);
HONE_API const char* hone_dtype_name(int32_t dtype);

/* Bytes of an element; 0 for an unknown dtype. */
HONE_API size_t hone_dtype_size(int32_t dtype);

/* Results per output: 2 for minmax and mean_variance, which lie side by side; 0 for an unknown operation. */
HONE_API int32_t hone_op_outputs(int32_t op);

/* --- Devices ----------------------------------------------------------------------------------------------------- */

typedef struct hone_device hone_device;

/* Opens "cuda:0", "cuda:1", … or "host"; "auto" is the first CUDA device, or else the host. hone_device_close(). */
HONE_API hone_status hone_device_open(const char* name, hone_device** device);
HONE_API void hone_device_close(hone_device* device);

/* "cuda:0". Lives as long as `device`. */
HONE_API const char* hone_device_name(const hone_device* device);

/* The devices of this machine as a JSON array of names, CUDA devices first. hone_free(). */
HONE_API hone_status hone_devices(char** json);

/* What is known of a device, as a JSON object: SMs, bytes of shared memory, bandwidth, … hone_free(). */
HONE_API hone_status hone_device_facts(const hone_device* device, char** json);

/* Device memory of at least `bytes` bytes, aligned to 256, uninitialised. hone_deallocate(), when nothing that uses it
 * is in flight. Not while a stream of this thread is being captured. Programs with arrays of their own need neither. */
HONE_API hone_status hone_allocate(hone_device* device, size_t bytes, void** pointer);
HONE_API void hone_deallocate(hone_device* device, void* pointer);

/* Copies in the order of `stream`; host memory must stay valid until the stream has passed the call. */
HONE_API hone_status hone_copy_to_device(hone_device* device, void* to, const void* from_host, size_t bytes,
                                         void* stream);
HONE_API hone_status hone_copy_to_host(hone_device* device, void* to_host, const void* from, size_t bytes,
                                       void* stream);

/* A stream that does not synchronise with the default stream. hone_stream_destroy(). */
HONE_API hone_status hone_stream_create(hone_device* device, void** stream);
HONE_API void hone_stream_destroy(hone_device* device, void* stream);

/* Waits until all work in `stream` is done, and reports failures of earlier launches. */
HONE_API hone_status hone_synchronize(hone_device* device, void* stream);

/* --- Sessions ---------------------------------------------------------------------------------------------------- */

enum {
  HONE_ON_MISS_TUNE = 0,      /* tune now, in this process, for up to tune_budget_ms */
  HONE_ON_MISS_HEURISTIC = 1, /* the default: the nearest tuned winner, else the occupancy model's first choice */
  HONE_ON_MISS_ERROR = 2      /* HONE_NOT_TUNED */
};

/* What winners are chosen by; those of one never serve a session of the other. docs/tuning.md. */
enum { HONE_OBJECTIVE_TIME = 0, HONE_OBJECTIVE_ENERGY = 1 };

typedef struct hone_session_options {
  size_t size;
  int32_t on_miss;
  int32_t capture_workspaces;  /* workspaces set aside for captured graphs, 1 MiB each */
  int64_t tune_budget_ms;
  int64_t cache_max_bytes;     /* 0: no limit; else 1 MiB at least */
  const char* cache_path;      /* "": no cache file; NULL: what the environment says. Copied */
  int32_t cache_read_only;
  int32_t load_binaries;       /* 0: stored code is never run, but compiled again */
  int32_t validate_pointers;   /* ask the driver about every pointer, at about a microsecond each */
  int32_t objective;           /* HONE_OBJECTIVE_…; energy needs a device that counts it, else tuning is refused */
} hone_session_options;

/* The defaults, with what the environment says of them (HONE_CACHE, HONE_ON_MISS, …). `size` is sizeof(*options).
 * Unless HONE_ON_MISS is set, the first call of the process that nothing was tuned for says on standard error how to
 * tune it. */
HONE_API hone_status hone_session_options_init(hone_session_options* options, size_t size);

typedef struct hone_session hone_session;

/* The runtime of one device: make one per device and keep it. `options` may be NULL: the defaults.
 * hone_session_destroy(), when no launch is pending. */
HONE_API hone_status hone_session_create(hone_device* device, const hone_session_options* options,
                                         hone_session** session);
HONE_API void hone_session_destroy(hone_session* session);

/* Each class of problems keeps the winner that it has, and nothing is tuned any more: Session::pin(). */
HONE_API hone_status hone_session_pin(hone_session* session);

/* What a session did so far, as a JSON object of numbers: cache_hits, tunings, compiles, … hone_free(). */
HONE_API hone_status hone_session_counters(const hone_session* session, char** json);

/* --- Choices ----------------------------------------------------------------------------------------------------- */

enum {
  HONE_FROM_MEMORY = 0,    /* the session's table */
  HONE_FROM_CACHE = 1,     /* the cache file, by this call; nothing was compiled */
  HONE_FROM_TUNING = 2,    /* tuned by this call */
  HONE_FROM_HEURISTIC = 3, /* the occupancy model's first choice, compiled by this call */
  HONE_FROM_NEAREST = 4,   /* the tuned winner of the nearest class */
  HONE_FROM_SHIPPED = 5    /* tuned on such a device, and shipped with Hone; compiled and verified by this call */
};

/* What a call was dispatched to. Filled where the caller passes one; NULL is fine. */
typedef struct hone_choice {
  size_t size;
  int32_t source;     /* HONE_FROM_… */
  int32_t tuned;      /* 1: the kernel was measured for this class of problems */
  double median_us;   /* when it was tuned, at the size that it was tuned at; 0 where it was not */
  int64_t max_blocks; /* of the grid; 0: nothing was launched, as for an empty matrix */
} hone_choice;

HONE_API hone_status hone_choice_init(hone_choice* choice, size_t size);

/* --- Reductions --------------------------------------------------------------------------------------------------
 * Semantics, dtypes and empty arrays are those of hone::tuned_reduce() and its kin: docs/reductions.md. */

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

/* --- Softmax, normalisation, transposes, copies ----------------------------------------------------------------- */

typedef struct hone_softmax_spec {
  size_t size;
  int32_t dtype;       /* f16, bf16, f32 or f64 */
  int32_t result;      /* likewise; −1: dtype */
  int32_t logarithm;   /* 1: log_softmax */
  int32_t numerics;    /* HONE_NUMERICS_… */
  double scale;        /* multiplies each element first */
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

/* --- Kernels of your own -----------------------------------------------------------------------------------------
 * A hone_kernel_spec describes a kernel, with the fields of docs/own-kernel.md; a hone_kernel is one that was read and
 * checked. It is tuned as a problem: hone_problem_kernel(). examples/c/own_kernel.c. */

typedef struct hone_kernel_spec hone_kernel_spec;
typedef struct hone_kernel hone_kernel;

/* A description without fields. hone_kernel_spec_destroy(), when its kernels are made. */
HONE_API hone_status hone_kernel_spec_create(hone_kernel_spec** spec);
HONE_API void hone_kernel_spec_destroy(hone_kernel_spec* spec);

/* Gives a field its value as text: "name", "file", "source", "entry", "grid_stride" (true or false), "alignment",
 * "dynamic_smem_bytes", "cluster_blocks", "dependent_launch", "tolerance", and "reference", the source of a plain
 * kernel. Of "where", "extents", "block", "elements_per_block", "elements_per_thread" and "inputs", which are lists,
 * each call adds one value, and the first replaces the default. */
HONE_API hone_status hone_kernel_spec_add(hone_kernel_spec* spec, const char* field, const char* value);

/* Adds a parameter and the texts of its `count` values, the default first. If all are numbers above 0, they are sizes,
 * of which neighbours behave alike; anything else is a list of choices. */
HONE_API hone_status hone_kernel_spec_add_parameter(hone_kernel_spec* spec, const char* name,
                                                    const char* const* values, int32_t count);

enum {
  HONE_ARGUMENT_IN = 0,    /* an array that is read */
  HONE_ARGUMENT_OUT = 1,   /* written */
  HONE_ARGUMENT_INOUT = 2, /* read and written in place */
  HONE_ARGUMENT_SCALAR = 3, /* a number that every call passes; at most four */
  HONE_ARGUMENT_EXTENT = 4  /* a number that follows from the extents; calls do not pass it */
};

typedef struct hone_kernel_argument {
  size_t size;
  int32_t kind;              /* HONE_ARGUMENT_… */
  int32_t dtype;             /* of the elements, or of the number */
  const char* name;          /* of an extent: the expression whose value is passed, such as "n" */
  const char* elements;      /* arrays: their length, an expression of extents; NULL: the product of all extents */
  const char* indices_below; /* arrays of indices: what their elements are less than; NULL: any values */
  double value;              /* scalars: what they are while the kernel is tuned and verified */
  int32_t reference_dtype;   /* arrays: of the elements that a reference function gets; −1: dtype */
  int32_t reserved;          /* 0 */
} hone_kernel_argument;

/* An array of f32 that is read, without a name; a value of 1. */
HONE_API hone_status hone_kernel_argument_init(hone_kernel_argument* argument, size_t size);

/* Adds an argument, in the kernel's order. Texts are copied. */
HONE_API hone_status hone_kernel_spec_add_argument(hone_kernel_spec* spec, const hone_kernel_argument* argument);

/* One argument as a reference function gets it: an array in host memory, or a number. */
typedef struct hone_kernel_operand {
  void* data;       /* NULL for a number */
  int64_t elements; /* 0 for a number */
  double number;    /* 0 for an array */
} hone_kernel_operand;

/* Computes in host memory what the kernel has to write. `operands` are its arguments in order: inout arrays hold their
 * input, out arrays zeros. A result other than 0 ends the tuning with HONE_INVALID_ARGUMENT, and nothing is stored.
 * Called from the thread that tunes, between its launches; it must not call the session. */
typedef int32_t (*hone_kernel_reference)(void* context, const hone_kernel_operand* operands, int32_t operand_count,
                                         const int64_t* extents, int32_t extent_count);

/* Winners agree with `reference`. Without it, and without the field of that name, they agree with the default policy.
 * `context` stays valid as long as a kernel of the description may be tuned. */
HONE_API hone_status hone_kernel_spec_set_reference(hone_kernel_spec* spec, hone_kernel_reference reference,
                                                    void* context);

/* Reads the source and checks the description; compiles nothing. Kernels with equal descriptions share winners. The
 * library keeps what it read as long as the process lives. hone_kernel_destroy(). */
HONE_API hone_status hone_kernel_create(const hone_kernel_spec* spec, hone_kernel** kernel);
HONE_API void hone_kernel_destroy(hone_kernel* kernel);

/* The lengths of the arrays of a call with these extents, in the kernel's order; `elements` has room for `array_count`,
 * which is the number of its arrays. */
HONE_API hone_status hone_kernel_elements(const hone_kernel* kernel, const int64_t* extents, int32_t extent_count,
                                          int64_t* elements, int32_t array_count);

/* Arrays and scalars are in the kernel's order. A scalar that its type cannot be is HONE_INVALID_ARGUMENT, as is an
 * integer of 2^53 or more on either side of 0, since a double may stand for several of them; pass it in an array. If an
 * extent is 0, nothing is launched. */
HONE_API hone_status hone_kernel_launch(hone_session* session, const hone_kernel* kernel, void* const* arrays,
                                        int32_t array_count, const double* scalars, int32_t scalar_count,
                                        const int64_t* extents, int32_t extent_count, void* stream,
                                        hone_choice* choice);

/* --- Ahead of the call -------------------------------------------------------------------------------------------
 * A problem describes a call without its pointers. `alignment` is what all of its pointers are aligned to, in bytes: a
 * power of two, 16 for the widest. Each is destroyed by hone_problem_destroy(). */

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
 * result other than 0 ends the tuning early, without a winner, after at most some more calls. */
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
