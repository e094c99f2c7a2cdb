/* Sums an array in C, on the GPU or on the CPU where there is none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hone/c.h>

static void check(hone_status status, const char* what) {
  if (status == HONE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, hone_status_name(status), hone_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? atoll(argv[1]) : 1000000;
  float* values = n > 0 ? malloc((size_t)n * sizeof(float)) : NULL;
  if (values == NULL) {
    fprintf(stderr, "there is no memory for %" PRId64 " elements; give a number above 0\n", n);
    return 1;
  }
  for (int64_t i = 0; i < n; ++i) values[i] = 0.5f;

  hone_device* device = NULL;
  hone_session* session = NULL;
  void *stream = NULL, *in = NULL, *out = NULL;
  check(hone_device_open("auto", &device), "opening a device");
  check(hone_session_create(device, NULL, &session), "making a session");
  check(hone_stream_create(device, &stream), "making a stream");
  check(hone_allocate(device, (size_t)n * sizeof(float), &in), "allocating the input");
  check(hone_allocate(device, sizeof(float), &out), "allocating the output");
  check(hone_copy_to_device(device, in, values, (size_t)n * sizeof(float), stream), "copying the input");

  hone_reduce_spec spec;
  check(hone_reduce_spec_init(&spec, sizeof spec), "describing the sum");
  spec.op = hone_op("sum");
  spec.dtype = hone_dtype("f32");
  hone_choice choice;
  check(hone_choice_init(&choice, sizeof choice), "making room for the choice");
  check(hone_reduce(session, &spec, in, n, out, stream, &choice), "summing");

  float sum = 0;
  check(hone_copy_to_host(device, &sum, out, sizeof sum, stream), "copying the sum");
  check(hone_synchronize(device, stream), "waiting");
  printf("%s: the sum of %" PRId64 " halves is %.1f (kernel: %s)\n", hone_device_name(device), n, sum,
         hone_source_name(choice.source));

  hone_deallocate(device, in);
  hone_deallocate(device, out);
  hone_stream_destroy(device, stream);
  hone_session_destroy(session);
  hone_device_close(device);
  free(values);
  return 0;
}
