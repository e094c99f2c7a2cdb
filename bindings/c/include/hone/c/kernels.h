/* The part of hone/c.h for kernels of your own. A hone_kernel_spec describes a kernel, with the fields of
 * docs/own-kernel.md; a hone_kernel is one that was read and checked. It is tuned as a problem: hone_problem_kernel().
 * examples/c/own_kernel.c. */
#ifndef HONE_C_KERNELS_H
#define HONE_C_KERNELS_H

#include <hone/c/basics.h>

#ifdef __cplusplus
extern "C" {
#endif

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
 * integer of 2^53 or more on either side of 0, since a double may stand for several of them; pass it in an array. So is
 * an array that is written and shares memory with another, unless that is only read and is the very same array. If an
 * extent is 0, nothing is launched. */
HONE_API hone_status hone_kernel_launch(hone_session* session, const hone_kernel* kernel, void* const* arrays,
                                        int32_t array_count, const double* scalars, int32_t scalar_count,
                                        const int64_t* extents, int32_t extent_count, void* stream,
                                        hone_choice* choice);

#ifdef __cplusplus
}
#endif

#endif
