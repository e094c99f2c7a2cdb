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

#include <hone/c/basics.h>
#include <hone/c/kernels.h>
#include <hone/c/matrices.h>
#include <hone/c/problems.h>
#include <hone/c/reductions.h>

#endif
