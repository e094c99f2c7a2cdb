#!/usr/bin/env python3
"""The kernels of examples/kernels/, tuned by Hone and by Kernel Tuner in the same run: for each, the time to tune, and
the time of both winners, compiled by one compiler (NVRTC) and timed in turn by one timer (CUDA events). With --bugs,
also what Kernel Tuner notices of planted bugs, at sizes that no tile divides.

Kernel Tuner gets what the kernel file says: parameters, restrictions, grid, shared memory, and an answer, that of the
plain kernel. It takes the configurations at random, and as many as the time allows.

Usage: own_kernels_vs_kernel_tuner.py HONE [--seconds 150] [--kernel NAME=SIZE]... [--bugs]

Needs Python 3.11, Kernel Tuner 1.5.0 and CuPy.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import numpy as np

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "examples" / "kernels"
SIZES = {"axpy": "16777216", "stencil": "4096x4096", "convolution": "2048x2048"}
DTYPES = {"f32": np.float32, "i32": np.int32}
REFERENCE_BLOCKS = {1: (256,), 2: (16, 16), 3: (8, 8, 4)}  # as docs/own-kernel.md says of plain kernels
ATOL = 1e-4

# (what, kernel, size, text of the source, what takes its place)
BUGS = [
    ("missing guard", "axpy", "1048573", "if (i + vector <= n)", "if (true)"),
    ("missing guard", "stencil", "1021x1019", "if (x < width && y < height)", ""),
    ("missing guard", "convolution", "509x503", "if (x < width && y < height)", ""),
    ("race", "axpy", "1048573", "*(Pack*)(y + i) = ys", "*(Pack*)(y + i / 2 / vector * vector) = ys"),
    ("race", "stencil", "1021x1019", "__syncthreads();", ""),
    ("race", "convolution", "509x503", "__syncthreads();", ""),
    ("wrong constant", "axpy", "1048573", "ys.at[v] = a *", "ys.at[v] = 1.0001f * a *"),
    ("wrong constant", "stencil", "1021x1019", "0.2f *", "0.2001f *"),
    ("wrong constant", "convolution", "509x503", "weights[i] = filter[i]", "weights[i] = 1.001f * filter[i]"),
    ("uninitialised shared memory", "stencil", "1021x1019", "tile[i] = in",
     "if (i != kColumns + 1) tile[i] = in"),
    ("uninitialised shared memory", "convolution", "509x503", "weights[i] = filter[i]",
     "if (i > 0) weights[i] = filter[i]"),
]


class Kernel:
    """A kernel file with inputs of one size on the GPU."""

    def __init__(self, name, size, source=None):
        import cupy
        self.name, self.size, self.file = name, size, KERNELS / f"{name}.toml"
        spec = tomllib.loads(self.file.read_text())
        self.source = source or (KERNELS / spec["file"]).read_text()
        self.parameters = spec["parameters"]
        self.where = [spec["where"]] if isinstance(spec.get("where"), str) else spec.get("where", [])
        listed = lambda value: value if isinstance(value, list) else [value]
        self.block = [str(text) for text in listed(spec.get("block", "block_threads"))]
        self.per_thread = [str(text) for text in listed(spec.get("elements_per_thread", 1))]
        self.shared_bytes = str(spec.get("dynamic_smem_bytes", 0))
        self.extents = dict(zip(spec.get("extents", ["n"]), map(int, size.split("x"))))
        random, usual = np.random.default_rng(1), "*".join(self.extents)
        self.arguments, self.written = [], []
        for argument in spec["arguments"]:
            kind = next(key for key in ("in", "out", "inout", "scalar", "extent") if key in argument)
            dtype = DTYPES[argument["type"]]
            if kind == "scalar":
                self.arguments.append(dtype(2.5))
            elif kind == "extent":
                self.arguments.append(dtype(self.number(argument["extent"])))
            else:
                elements = self.number(argument.get("elements", usual))
                if kind != "in":
                    self.written.append(len(self.arguments))
                self.arguments.append(np.zeros(elements, dtype) if kind == "out" else
                                      random.uniform(-1, 1, elements).astype(dtype))
        self.answer = self.reference(cupy, spec["reference"]["source"])

    def number(self, expression, policy=None):
        return int(eval(str(expression), {"min": min, "max": max}, {**self.extents, **(policy or {})}))

    def on_device(self, cupy):
        return [cupy.asarray(value) if isinstance(value, np.ndarray) else value for value in self.arguments]

    def reference(self, cupy, source):
        name = re.search(r"__global__ void (\w+)", source)[1]
        block = REFERENCE_BLOCKS[len(self.extents)]
        grid = tuple(-(-extent // threads) for extent, threads in zip(self.extents.values(), block))
        arrays = self.on_device(cupy)
        plain = cupy.RawModule(code='extern "C" ' + source.strip(), options=("-std=c++17",)).get_function(name)
        plain(grid, block, tuple(arrays))
        return [cupy.asnumpy(array) if i in self.written else None for i, array in enumerate(arrays)]

    def launcher(self, cupy, policy):
        """A function that launches the kernel with the values of `policy` on arrays of its own."""
        defines = "".join(f"#define {name} {value}\n" for name, value in policy.items())
        kernel = cupy.RawModule(code=defines + self.source, options=("-std=c++17",)).get_function(self.name)
        block = tuple(self.number(text, policy) for text in self.block)
        tiles = [threads * self.number(text, policy) for threads, text in zip(block, self.per_thread)]
        grid = tuple(-(-extent // tile) for extent, tile in zip(self.extents.values(), tiles))
        arrays, shared = tuple(self.on_device(cupy)), self.number(self.shared_bytes, policy)
        return lambda: kernel(grid, block, arrays, shared_mem=shared)


def tuned_by_kernel_tuner(kernel, seconds):
    """(seconds, configurations that were measured, the fastest's values, its time in µs)"""
    from kernel_tuner import tune_kernel
    divisors = [f"({block}) * ({elements})" for block, elements in zip(kernel.block, kernel.per_thread)]
    start = time.perf_counter()
    with open(os.devnull, "w") as nowhere:
        stdout, sys.stdout = sys.stdout, nowhere
        try:
            results, _ = tune_kernel(
                kernel.name, kernel.source, tuple(kernel.extents.values()), kernel.arguments, kernel.parameters,
                grid_div_x=[divisors[0]], grid_div_y=divisors[1:2] or None, restrictions=kernel.where or None,
                answer=kernel.answer, atol=ATOL, lang="cupy", compiler_options=["-std=c++17"],
                block_size_names=list(kernel.block), smem_args={"size": kernel.shared_bytes}, strategy="random_sample",
                strategy_options={"fraction": 1.0, "time_limit": seconds}, quiet=True)
        finally:
            sys.stdout = stdout
    valid = [result for result in results if isinstance(result.get("time"), (int, float))]
    best = min(valid, key=lambda result: result["time"])
    policy = {name: best[name] for name in kernel.parameters}
    return time.perf_counter() - start, len(valid), policy, best["time"] * 1e3


def tuned_by_hone(hone, kernel, device, seconds):
    """The same of Hone, which gets the kernel file."""
    with tempfile.TemporaryDirectory() as folder:
        common = ["--size", kernel.size, "--cache", f"{folder}/cache.sqlite", "--device"]
        start = time.perf_counter()
        subprocess.run([hone, "tune", str(kernel.file), *common, device, "--budget", f"{int(seconds)}s", "--quiet"],
                       check=True, capture_output=True, text=True)
        took = time.perf_counter() - start
        text = subprocess.run([hone, "explain", "--family", str(kernel.file), *common, device.split(":")[0], "--json"],
                              check=True, capture_output=True, text=True).stdout
    winner = json.loads(text)["winners"][0]
    policy = {}
    for word in winner["candidate"]["policy"].split():  # such as 128t x8 vector=4
        threads, unroll, named = re.fullmatch(r"(\d+)t", word), re.fullmatch(r"x(\d+)", word), word.split("=")
        name, value = (("block_threads", threads[1]) if threads else ("unroll", unroll[1]) if unroll else named)
        policy[name] = int(value)
    return took, winner["measured"], policy, winner["median_us"]


def times_in_turn(cupy, launchers, rounds=31):
    """The median time in µs of a launch of each: batches of at least two milliseconds, in turn."""
    def batch_ms(launch, count):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        for _ in range(count):
            launch()
        last.record()
        last.synchronize()
        return cupy.cuda.get_elapsed_time(first, last)

    counts = [max(5, int(2 / max(batch_ms(launch, 20) / 20, 1e-4))) for launch in launchers]
    times = [[] for _ in launchers]
    for turn in range(rounds):
        for which in (range(len(launchers)) if turn % 2 else reversed(range(len(launchers)))):
            times[which].append(batch_ms(launchers[which], counts[which]) / counts[which] * 1e3)
    return [statistics.median(list_of_times) for list_of_times in times]


def compare(options, name, size, seconds):
    import cupy
    kernel = Kernel(name, size)
    theirs = tuned_by_kernel_tuner(kernel, seconds * 0.6)
    print(f"{name} {size}: Kernel Tuner tuned {theirs[0]:.1f} s, {theirs[1]} configurations", flush=True)
    ours = tuned_by_hone(options.hone, kernel, options.device, seconds * 0.2)
    print(f"{name} {size}: Hone tuned {ours[0]:.1f} s, {ours[1]} candidates", flush=True)
    times = times_in_turn(cupy, [kernel.launcher(cupy, theirs[2]), kernel.launcher(cupy, ours[2])])
    for who, result, microseconds in zip(("Kernel Tuner", "Hone"), (theirs, ours), times):
        values = " ".join(f"{key}={result[2].get(key)}" for key in kernel.parameters)
        print(f"{name} {size}: {who}'s winner {microseconds:.2f} µs (in its own tuning {result[3]:.2f} µs): {values}",
              flush=True)


def notice(number):
    """Tunes a kernel with a planted bug: three seconds of its configurations, or as many as pass."""
    what, name, size, text, instead = BUGS[number]
    source = (KERNELS / f"{name}.cu").read_text()
    assert text in source
    os.chdir(tempfile.mkdtemp())  # Kernel Tuner leaves the source of a failure behind
    try:
        kernel = Kernel(name, size, source.replace(text, instead, 1))
        _, measured, _, _ = tuned_by_kernel_tuner(kernel, 3)
        print(f"{name}, {what}: not noticed, {measured} configurations passed")
    except Exception as error:  # whatever ends the tuning is a notice
        print(f"{name}, {what}: noticed: {type(error).__name__}: {str(error).strip().splitlines()[0][:90]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hone")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=150, help="for all kernels together (default: 150)")
    parser.add_argument("--kernel", action="append", metavar="NAME=SIZE")
    parser.add_argument("--bugs", action="store_true", help="also plant bugs, and see what Kernel Tuner notices")
    parser.add_argument("--bug", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if "CUPY_CACHE_DIR" not in os.environ:  # a compilation that CuPy remembers would cost nothing
        os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()
    if options.bug is not None:
        return notice(options.bug)
    sizes = dict(text.split("=") for text in options.kernel) if options.kernel else SIZES
    for name, size in sizes.items():
        try:
            compare(options, name, size, options.seconds / len(sizes))
        except subprocess.CalledProcessError as error:
            print(f"{name} {size}: {error}\n{error.stderr}", flush=True)
        except Exception as error:  # the other kernels still count
            print(f"{name} {size}: {type(error).__name__}: {error}", flush=True)
    for number in range(len(BUGS) if options.bugs else 0):  # each in a process: an illegal address ends its context
        command = [sys.executable, os.path.abspath(__file__), options.hone, "--bug", str(number)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            print(done.stdout.strip() or f"{BUGS[number][1]}, {BUGS[number][0]}: exit {done.returncode}: "
                  f"{done.stderr.strip()[-200:]}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{BUGS[number][1]}, {BUGS[number][0]}: no end after 30 s", flush=True)


if __name__ == "__main__":
    main()
