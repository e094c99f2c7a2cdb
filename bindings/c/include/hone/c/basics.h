/* The part of hone/c.h that all others need: status, names, devices, sessions and choices. */
#ifndef HONE_C_BASICS_H
#define HONE_C_BASICS_H

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

/* The name of a HONE_FROM_…: "memory", "cache", "tuned", "heuristic", "nearest", "shipped"; NULL for a number that is
 * none. Later versions may add sources. Lives forever. */
HONE_API const char* hone_source_name(int32_t source);

#ifdef __cplusplus
}
#endif

#endif
