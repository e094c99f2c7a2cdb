/* Tunes a kernel of your own in C: y[i] = a * x[i] + y[i], on the GPU or on the CPU where there is none. */
#include <stdio.h>
#include <stdlib.h>

#include <hone/c.h>

static const char* const kSource =
    "extern \"C\" __global__ void axpy(float a, const float* x, float* y, int n) {\n"
    "  for (int u = 0; u < unroll; ++u) {\n"
    "    const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "  }\n"
    "}\n";

static void check(hone_status status, const char* what) {
  if (status == HONE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, hone_status_name(status), hone_last_error());
  exit(1);
}

/* The right results: the kernel's arguments in order, with the arrays in double. */
static int32_t axpy(void* context, const hone_kernel_operand* operands, int32_t count, const int64_t* extents,
                    int32_t extent_count) {
  (void)context, (void)count, (void)extent_count;
  const double a = operands[0].number, *x = operands[1].data;
  double* y = operands[2].data;
  for (int64_t i = 0; i < extents[0]; ++i) y[i] = a * x[i] + y[i];
  return 0;
}

static void add_argument(hone_kernel_spec* spec, int32_t kind, const char* name, const char* dtype) {
  hone_kernel_argument argument;
  check(hone_kernel_argument_init(&argument, sizeof argument), "making an argument");
  argument.kind = kind;
  argument.name = name;
  argument.dtype = hone_dtype(dtype);
  if (kind == HONE_ARGUMENT_IN || kind == HONE_ARGUMENT_INOUT) argument.reference_dtype = hone_dtype("f64");
  check(hone_kernel_spec_add_argument(spec, &argument), name);
}

int main(void) {
  const char* const block_threads[] = {"256", "128", "512"};
  const char* const unroll[] = {"4", "1", "2"};
  hone_kernel_spec* spec = NULL;
  check(hone_kernel_spec_create(&spec), "describing the kernel");
  check(hone_kernel_spec_add(spec, "source", kSource), "source");
  check(hone_kernel_spec_add(spec, "elements_per_thread", "unroll"), "elements_per_thread");
  check(hone_kernel_spec_add_parameter(spec, "block_threads", block_threads, 3), "block_threads");
  check(hone_kernel_spec_add_parameter(spec, "unroll", unroll, 3), "unroll");
  add_argument(spec, HONE_ARGUMENT_SCALAR, "a", "f32");
  add_argument(spec, HONE_ARGUMENT_IN, "x", "f32");
  add_argument(spec, HONE_ARGUMENT_INOUT, "y", "f32");
  add_argument(spec, HONE_ARGUMENT_EXTENT, "n", "i32");
  check(hone_kernel_spec_set_reference(spec, axpy, NULL), "reference");
  hone_kernel* kernel = NULL;
  check(hone_kernel_create(spec, &kernel), "reading the kernel");
  hone_kernel_spec_destroy(spec);

  enum { kElements = 100000 };
  const int64_t n = kElements;
  const double a = 2.5;
  static float ones[kElements];
  for (int i = 0; i < kElements; ++i) ones[i] = 1;
  hone_device* device = NULL;
  hone_session* session = NULL;
  void* arrays[2] = {NULL, NULL};
  check(hone_device_open("auto", &device), "opening a device");
  check(hone_session_create(device, NULL, &session), "making a session");
  for (int i = 0; i < 2; ++i) {
    check(hone_allocate(device, sizeof ones, &arrays[i]), "allocating an array");
    check(hone_copy_to_device(device, arrays[i], ones, sizeof ones, NULL), "copying it");
  }

  hone_problem* problem = NULL;
  char* tuning = NULL;
  check(hone_problem_kernel(kernel, &n, 1, 16, &problem), "describing the call");
  check(hone_tune(session, problem, 500, &tuning), "tuning");
  hone_choice choice;
  check(hone_choice_init(&choice, sizeof choice), "making room for the choice");
  check(hone_kernel_launch(session, kernel, arrays, 2, &a, 1, &n, 1, NULL, &choice), "launching");
  check(hone_copy_to_host(device, ones, arrays[1], sizeof ones, NULL), "copying the results");
  check(hone_synchronize(device, NULL), "waiting");
  printf("%s: 2.5 * 1 + 1 = %g, by a kernel of %.3g us\n", hone_device_name(device), ones[kElements - 1],
         choice.median_us);

  hone_free(tuning);
  hone_problem_destroy(problem);
  hone_deallocate(device, arrays[0]);
  hone_deallocate(device, arrays[1]);
  hone_session_destroy(session);
  hone_device_close(device);
  hone_kernel_destroy(kernel);
  return 0;
}
