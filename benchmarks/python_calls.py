#!/usr/bin/env python3
"""Hone called from Python with PyTorch's tensors: the cost of a call next to that of its C call, and sums,
softmax and logsumexp of rows next to PyTorch, eager and compiled, in streams and in graphs. Needs the package hone-gpu,
PyTorch and a C compiler. Without a CUDA device it runs, and its times mean nothing. See benchmarks/README.md."""

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import hone
import torch

SOURCE = """extern "C" __global__ void scaled(const float* x, float by, float* y, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}"""
SHAPES = [(256, 256), (8192, 4096), (65536, 1024), (64, 1 << 20), (1 << 20, 64)]
# Sums 256 floats, or scales them by a kernel of one's own, and times the calls: two loops, which differ in their call.
LOOP = r"""
#include <time.h>
#include <hone/c.h>
#define TIMED(CALL)                                                                       \
  struct timespec begin, end;                                                             \
  if (CALL != 0) return -1;                                                               \
  hone_synchronize(device, stream);                                                       \
  clock_gettime(CLOCK_MONOTONIC, &begin);                                                 \
  for (int32_t i = 0; i < calls; ++i)                                                     \
    if (CALL != 0) return -1;                                                             \
  clock_gettime(CLOCK_MONOTONIC, &end);                                                   \
  hone_synchronize(device, stream);                                                       \
  return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / calls;

static int open_session(const char* name, hone_device** device, hone_session** session) {
  hone_session_options options;
  if (hone_device_open(name, device) != 0 || hone_session_options_init(&options, sizeof options) != 0) return -1;
  options.on_miss = HONE_ON_MISS_HEURISTIC;
  return hone_session_create(*device, &options, session);
}

static int add_argument(hone_kernel_spec* spec, int32_t kind, const char* name, int32_t dtype) {
  hone_kernel_argument argument;
  if (hone_kernel_argument_init(&argument, sizeof argument) != 0) return -1;
  argument.kind = kind, argument.name = name, argument.dtype = dtype;
  return hone_kernel_spec_add_argument(spec, &argument);
}

/* Nanoseconds that each of `calls` sums of n floats takes to be enqueued; negative: a call failed. */
double time_sums(const char* name, const void* in, int64_t n, void* out, void* stream, int32_t calls) {
  hone_device* device;
  hone_session* session;
  hone_reduce_spec spec;
  if (open_session(name, &device, &session) != 0 || hone_reduce_spec_init(&spec, sizeof spec) != 0) return -1;
  TIMED(hone_reduce(session, &spec, in, n, out, stream, NULL))
}

double time_kernels(const char* name, const void* in, int64_t n, void* out, void* stream, int32_t calls) {
  hone_device* device;
  hone_session* session;
  hone_kernel_spec* spec;
  hone_kernel* kernel;
  const char* values[] = {"64", "128", "256"};
  void* arrays[] = {(void*)in, out};
  const double by = 3;
  if (open_session(name, &device, &session) != 0 || hone_kernel_spec_create(&spec) != 0 ||
      hone_kernel_spec_add(spec, "source", SOURCE) != 0 ||
      hone_kernel_spec_add_parameter(spec, "block_threads", values, 3) != 0 ||
      add_argument(spec, HONE_ARGUMENT_IN, "x", hone_dtype("f32")) != 0 ||
      add_argument(spec, HONE_ARGUMENT_SCALAR, "by", hone_dtype("f32")) != 0 ||
      add_argument(spec, HONE_ARGUMENT_OUT, "y", hone_dtype("f32")) != 0 ||
      add_argument(spec, HONE_ARGUMENT_EXTENT, "n", hone_dtype("i32")) != 0 || hone_kernel_create(spec, &kernel) != 0)
    return -1;
  TIMED(hone_kernel_launch(session, kernel, arrays, 2, &by, 1, &n, 1, stream, NULL))
}
"""


def compile_loops(folder):
    """The C loops over the library that the package carries."""
    include = pathlib.Path(__file__).parent.parent / "bindings/c/include"
    library = pathlib.Path(hone.__file__).with_name("lib")
    source, binary = pathlib.Path(folder) / "loop.c", pathlib.Path(folder) / "loop.so"
    source.write_text(f"#define SOURCE {json.dumps(SOURCE)}\n{LOOP}")
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", f"-I{include}", str(source), f"-L{library}", "-l:libhone.so.0",
         f"-Wl,-rpath,{library}", "-o", str(binary)], check=True)  # fmt: skip
    compiled = ctypes.CDLL(str(binary))
    loops = compiled.time_sums, compiled.time_kernels
    for loop in loops:
        loop.restype = ctypes.c_double
        loop.argtypes = [
            ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32,
        ]  # fmt: skip
    return loops


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def time_python(call, device, calls):
    """Nanoseconds that each call takes to be enqueued."""
    call()
    synchronize(device)
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    taken = (time.perf_counter_ns() - begin) / calls
    synchronize(device)
    return taken


@hone.kernel(
    source=SOURCE,
    parameters={"block_threads": [64, 128, 256]},
    arguments=[
        {"in": "x", "type": "f32"}, {"scalar": "by", "type": "f32"}, {"out": "y", "type": "f32"},
        {"extent": "n", "type": "i32"},
    ],
)  # fmt: skip
def scaled(x, by):
    return x * by


def compare_calls(device, calls, rounds):
    y = torch.empty(256, device=device)
    x, out = torch.ones(256, device=device), torch.empty((), device=device)
    name = b"cuda:0" if device == "cuda" else b"host"
    stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else None
    with tempfile.TemporaryDirectory() as folder:
        sums, kernels = compile_loops(folder)
        sum_of, scale = (
            lambda loop=loop, to=to: loop(name, x.data_ptr(), 256, to.data_ptr(), stream, calls)
            for loop, to in ((sums, out), (kernels, y))
        )
        ways = {
            "C": sum_of,
            "Python, out=": lambda: time_python(lambda: hone.sum(x, out=out), device, calls),
            "Python": lambda: time_python(lambda: hone.sum(x), device, calls),
            "torch.sum": lambda: time_python(lambda: torch.sum(x), device, calls),
            "own kernel, C": scale,
            "own kernel, out=": lambda: time_python(lambda: scaled(x, 3.0, out=y), device, calls),
            "torch.mul, out=": lambda: time_python(lambda: torch.mul(x, 3.0, out=y), device, calls),
        }
        print("a call that sums or scales 256 floats, until it is enqueued", flush=True)
        for way, measure in ways.items():
            taken = statistics.median(measure() for _ in range(rounds))
            if taken < 0:
                raise SystemExit(f"python_calls: the loop of {way} failed")
            if way.endswith("C"):
                in_c = taken
            print(f"  {way:16} {taken / 1000:7.2f} µs   {(taken - in_c) / 1000:+7.2f} µs beside C", flush=True)


def time_device(call, calls):
    """Microseconds of a call on the device, of `calls` back to back."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / calls


def captured(call, calls):
    """A function that replays a graph of `calls` calls."""
    for _ in range(3):
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph.replay


def compare_kernels(operations, budget, rounds, seconds):
    peers = {"sum": lambda x: x.sum(1), "softmax": lambda x: x.softmax(1), "logsumexp": lambda x: x.logsumexp(1)}
    calls, start = 50, time.perf_counter()
    print("\nµs of a call, eager and compiled PyTorch ÷ Hone; then the same in replayed graphs")
    for operation in operations:
        peer = peers[operation]
        for shape in SHAPES:
            if time.perf_counter() - start > seconds:
                raise SystemExit(f"python_calls: {seconds:.0f} s are over: the rest is left out")
            x = torch.randn(shape, device="cuda")
            for graph in (False, True):
                hone.tune(operation, x, axis=1, budget=budget, graph=graph)
            functions = [lambda: getattr(hone, operation)(x, axis=1), lambda: peer(x)]  # noqa: B023
            compiled = torch.compile(peer, dynamic=False)
            functions.append(lambda: compiled(x))  # noqa: B023
            replays = [captured(function, calls) for function in functions]
            stream = [statistics.median(time_device(f, calls) for _ in range(rounds)) for f in functions]
            replay = [statistics.median(time_device(f, 1) / calls for _ in range(rounds)) for f in replays]
            columns = [f"{t[0]:9.2f} {t[1] / t[0]:6.2f} {t[2] / t[0]:6.2f}" for t in (stream, replay)]
            print(f"  {operation:10} {'x'.join(map(str, shape)):>12} " + "  |".join(columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10000, help="calls in a row whose cost is measured")
    parser.add_argument("--rounds", type=int, default=9, help="measurements, of which the median is printed")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds to tune each problem")
    parser.add_argument("--operations", default="sum,softmax,logsumexp", help="next to PyTorch; '' for the calls alone")
    parser.add_argument("--seconds", type=float, default=600, help="begin no shape after so long")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "the host device: no figures"
    print(f"hone-gpu {hone.__version__}, PyTorch {torch.__version__}, {name}", flush=True)
    compare_calls(device, options.calls, options.rounds)
    if device == "cuda":
        operations = [name for name in options.operations.split(",") if name]
        compare_kernels(operations, options.budget, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
