#!/usr/bin/env python3
"""Hone's reductions next to PyTorch's, on the same tensors, streams and clock. See benchmarks/README.md."""
import argparse
import ctypes
import json
import math
import os
import statistics
import sys
import time

# PyTorch's spelling of each of Hone's operations. `dtype` is that of Hone's result, so that both do the same work.
OPERATIONS = {
    "sum": lambda torch, x, y, dtype: torch.sum(x, dtype=dtype),
    "product": lambda torch, x, y, dtype: torch.prod(x, dtype=dtype),
    "min": lambda torch, x, y, dtype: torch.amin(x),
    "max": lambda torch, x, y, dtype: torch.amax(x),
    "minmax": lambda torch, x, y, dtype: torch.aminmax(x),
    "argmin": lambda torch, x, y, dtype: torch.argmin(x),
    "argmax": lambda torch, x, y, dtype: torch.argmax(x),
    "mean": lambda torch, x, y, dtype: torch.mean(x, dtype=dtype),
    "mean_variance": lambda torch, x, y, dtype: tuple(reversed(torch.var_mean(x, correction=0))),
    "l1_norm": lambda torch, x, y, dtype: torch.linalg.vector_norm(x, 1, dtype=dtype),
    "l2_norm": lambda torch, x, y, dtype: torch.linalg.vector_norm(x, 2, dtype=dtype),
    "max_norm": lambda torch, x, y, dtype: torch.linalg.vector_norm(x, math.inf),
    "logsumexp": lambda torch, x, y, dtype: torch.logsumexp(x, 0),
    "dot": lambda torch, x, y, dtype: torch.dot(x, y),
    "any": lambda torch, x, y, dtype: torch.any(x),
    "all": lambda torch, x, y, dtype: torch.all(x),
    "count_nonzero": lambda torch, x, y, dtype: torch.count_nonzero(x),
}
DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool",
}
BATCH_US = 300
MOST_CALLS = 64
LEAST_ROUNDS = 5


class Missing(Exception):
    """Something that the comparison cannot do without is not there; the text says what and where it was looked for."""


class HoneError(Exception):
    pass


def load_torch():
    try:
        import torch
    except ImportError as error:
        raise Missing(f"PyTorch is missing: {sys.executable} cannot import torch ({error})") from error
    return torch


def load_library(path):
    if not os.path.exists(path):
        raise Missing(f"the library is missing: there is no {path}; build the target hone_for_python, and name the file with "
                      "--library or HONE_FOR_PYTHON")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Missing(f"the library cannot be loaded: {error}") from error
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in [
            ("hone_error", text, []),
            ("hone_open", pointer, [text, text, number]),
            ("hone_close", None, [pointer]),
            ("hone_prepare", number, [pointer, text, text, text, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint, number]),
            ("hone_result_dtype", text, [pointer, number]),
            ("hone_result_values", ctypes.c_int64, [pointer, number]),
            ("hone_read_ceiling", ctypes.c_double, [pointer, pointer, ctypes.c_int64]),
            ("hone_read", number, [pointer, pointer, ctypes.c_int64, pointer]),
            ("hone_variant", text, [pointer, number]),
            ("hone_launch", number, [pointer, number, pointer, pointer, pointer, pointer])]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Hone:
    """The library's session."""

    def __init__(self, library, device, cache, budget_ms):
        self.library = library
        self.session = library.hone_open(device.encode(), cache.encode(), budget_ms)
        if not self.session:
            raise HoneError(self.error())

    def error(self):
        return self.library.hone_error().decode()

    def prepare(self, operation, dtype, shape, alignment, in_graph, kind="reduce"):
        rows, columns = shape
        problem = self.library.hone_prepare(self.session, kind.encode(), operation.encode(), dtype.encode(), rows, columns,
                                            alignment, in_graph)
        if problem < 0:
            raise HoneError(self.error())
        return problem

    def result(self, problem):
        """Its dtype's name and how many values it has."""
        return (self.library.hone_result_dtype(self.session, problem).decode(),
                self.library.hone_result_values(self.session, problem))

    def read_ceiling_gbps(self, address, size_bytes):
        found = self.library.hone_read_ceiling(self.session, address, size_bytes)
        if found < 0:
            raise HoneError(self.error())
        return found

    def variant(self, problem):
        return self.library.hone_variant(self.session, problem).decode()

    def call(self, problem, first, second, out, stream):
        """A function of no arguments that enqueues one call, with everything converted beforehand."""
        return self.enqueuing(self.library.hone_launch, ctypes.c_void_p(self.session), ctypes.c_int(problem),
                              ctypes.c_void_p(first), ctypes.c_void_p(second), ctypes.c_void_p(out), ctypes.c_void_p(stream))

    def read(self, address, size_bytes, stream):
        """The same for a plain read, by the kernel that read_ceiling_gbps() found to be the fastest."""
        return self.enqueuing(self.library.hone_read, ctypes.c_void_p(self.session), ctypes.c_void_p(address),
                              ctypes.c_int64(size_bytes), ctypes.c_void_p(stream))

    def enqueuing(self, function, *arguments):
        def enqueue():
            if function(*arguments):
                raise HoneError(self.error())
        return enqueue


class Clock:
    """Batches of calls between two events; on the CPU, between two readings of the processor's clock."""

    def __init__(self, torch, device, l2_bytes):
        self.torch, self.device = torch, device
        self.flushed = torch.ones(2 * l2_bytes // 4, dtype=torch.float32, device=device)

    def synchronize(self):
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def batch_us(self, run):
        """Microseconds of one run. A read of twice the cache before it drives the inputs out."""
        self.flushed.sum()
        self.synchronize()
        if self.device == "cpu":
            start = time.perf_counter()
            run()
            return (time.perf_counter() - start) * 1e6
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def runner(self, calls, count, in_graph):
        """Runs the first `count` of `calls`, over and over; captured once if in a graph."""
        def run():
            for turn in range(count):
                calls[turn % len(calls)]()
        if not in_graph:
            return run
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=self.torch.cuda.current_stream()):
            run()
        return graph.replay

    def race(self, contestants, in_graph, rounds, cap_ms):
        """Median microseconds per call of each: contestants are lists of calls, one for each copy of the input. A batch
        has as many calls of one as of another: what its beginning costs is shared by all of them alike."""
        once_us = []
        for calls in contestants:
            calls[0]()
            once = self.runner(calls, 1, in_graph)
            once_us.append(min(self.batch_us(once) for _ in range(3)))
        count = max(1, min(MOST_CALLS, int(BATCH_US / max(min(once_us), 0.1))))
        runs = [self.runner(calls, count, in_graph) for calls in contestants]
        samples = [[] for _ in runs]
        end = time.perf_counter() + cap_ms / 1e3
        for round_ in range(rounds):
            if round_ >= LEAST_ROUNDS and time.perf_counter() >= end:
                break
            for i in range(len(runs)):
                at = (i + round_) % len(runs)
                samples[at].append(self.batch_us(runs[at]) / count)
        return [statistics.median(of_one) for of_one in samples]


def make_input(torch, dtype, elements, device):
    """Positive floats around 1; integers of the whole range of 8 bits."""
    kind = getattr(torch, DTYPES[dtype])
    generator = torch.Generator(device=device).manual_seed(12345)
    if kind.is_floating_point:
        return torch.rand(elements, generator=generator, device=device, dtype=torch.float32).add_(0.5).to(kind)
    if dtype == "bool":
        return torch.randint(0, 2, (elements,), generator=generator, device=device, dtype=torch.uint8).to(kind)
    low, high = (0, 256) if dtype == "u8" else (-128, 128)
    return torch.randint(low, high, (elements,), generator=generator, device=device, dtype=kind)


def values_of(result):
    return [float(value) for value in (result if isinstance(result, (tuple, list)) else [result])]


def agree(operation, ours, theirs):
    """Up to rounding; 16-bit results of PyTorch are rounded to 16 bits, and products may leave the range."""
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs):
        if a == b or (math.isnan(a) and math.isnan(b)):
            continue
        if operation == "product" and not all(math.isfinite(v) and 1e-30 < abs(v) < 1e30 for v in (a, b)):
            continue
        if not abs(a - b) <= 2e-2 * max(abs(a), abs(b)):
            return False
    return True


def compare(torch, hone, clock, operation, dtype, n, in_graph, arena, options):
    """One row, or the reason why there is none."""
    copies = max(1, min(MOST_CALLS, arena.numel() // n))
    inputs = [arena[copy * n:(copy + 1) * n] for copy in range(copies)]
    alignment = 16 if all(x.data_ptr() % 16 == 0 for x in inputs) else arena.element_size()
    problem = hone.prepare(operation, dtype, (1, n), alignment, in_graph)
    result_dtype, values = hone.result(problem)
    torch_dtype = getattr(torch, DTYPES[result_dtype])
    out = torch.zeros(values, dtype=torch_dtype, device=arena.device)
    stream = 0 if clock.device == "cpu" else torch.cuda.current_stream().cuda_stream
    ours = [hone.call(problem, x.data_ptr(), inputs[(i + 1) % copies].data_ptr(), out.data_ptr(), stream)
            for i, x in enumerate(inputs)]
    function = OPERATIONS[operation]
    theirs = [lambda x=x, y=inputs[(i + 1) % copies]: function(torch, x, y, torch_dtype) for i, x in enumerate(inputs)]

    row = {"operation": operation, "dtype": dtype, "n": n, "context": "graph" if in_graph else "stream",
           "variant": hone.variant(problem)}
    try:
        expected = values_of(theirs[0]())
    except (RuntimeError, NotImplementedError, TypeError) as error:
        row["torch_lacks_it"] = str(error).splitlines()[0]
        return row
    ours[0]()
    clock.synchronize()
    row["agrees"] = agree(operation, values_of(list(out)), expected)
    hone_us, torch_us = clock.race([ours, theirs], in_graph, options.rounds, options.cell_ms)
    read = n * arena.element_size() * (2 if operation == "dot" else 1)
    row.update(hone_us=hone_us, torch_us=torch_us, ratio=torch_us / hone_us, hone_gbps=read / hone_us * 1e-3)
    return row


def parse_sizes(text):
    sizes = []
    for part in text.split(","):
        base, _, more = part.partition("+")
        size = 2 ** int(base[2:]) if base.startswith("2^") else int(base)
        sizes.append(size + int(more or 0))
    return sizes


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def print_rows(rows):
    print(f"{'operation':<15}{'dtype':<6}{'n':>11} {'in':<7}{'Hone us':>10}{'GB/s':>7}{'torch us':>10}{'ratio':>7}")
    for row in rows:
        start = f"{row['operation']:<15}{row['dtype']:<6}{row['n']:>11} {row['context']:<7}"
        if "ratio" not in row:
            print(f"{start} not in PyTorch: {row['torch_lacks_it']}")
            continue
        note = "" if row["agrees"] else "  DIFFERENT RESULTS"
        print(f"{start}{row['hone_us']:>10.2f}{row['hone_gbps']:>7.0f}{row['torch_us']:>10.2f}{row['ratio']:>7.2f}{note}")


def print_summary(rows):
    print("\nPyTorch time / Hone time: geometric mean (worst of how many)")
    for context in ("stream", "graph"):
        for name in list(OPERATIONS) + ["all"]:
            ratios = [row["ratio"] for row in rows
                      if "ratio" in row and row["context"] == context and name in (row["operation"], "all")]
            if ratios:
                print(f"  {context:<7} {name:<15} {geometric_mean(ratios):.2f} (worst {min(ratios):.2f} of {len(ratios)})")


def parse_arguments():
    default_library = os.environ.get("HONE_FOR_PYTHON", "build/gpu/benchmarks/libhone_for_python.so")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=default_library, help=f"libhone_for_python.so (default: {default_library})")
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or host: PyTorch on the CPU and Hone's host device")
    parser.add_argument("--ops", default=",".join(OPERATIONS), help="operations, with commas between (default: all)")
    parser.add_argument("--dtypes", default="f32,f16", help=f"of {','.join(DTYPES)} (default: f32,f16)")
    parser.add_argument("--sizes", default="2^10,2^16,2^20,2^24+1,2^28,2^30", help="1000, 2^20 or 2^20+1, with commas between")
    parser.add_argument("--contexts", default="stream,graph", help="stream, graph (default: both; host: stream alone)")
    parser.add_argument("--budget", type=int, default=100, help="tuning time a problem, in ms (default: 100)")
    parser.add_argument("--cache", default="", help="Hone's cache file (default: none)")
    parser.add_argument("--rounds", type=int, default=20, help="batches of each in a cell, at most (default: 20)")
    parser.add_argument("--cell-ms", type=float, default=30, help="time a cell, in ms, after five batches (default: 30)")
    parser.add_argument("--time", type=float, default=200, help="begin no cell after so many seconds (default: 200)")
    parser.add_argument("--json", help="write every row to this file")
    options = parser.parse_args()
    for given, known in ((options.ops, OPERATIONS), (options.dtypes, DTYPES), (options.contexts, ("stream", "graph"))):
        unknown = [name for name in given.split(",") if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(known)}")
    return options


def measure(torch, hone, clock, options):
    start, rows, cells = time.perf_counter(), [], 0
    sizes, on_gpu = parse_sizes(options.sizes), clock.device != "cpu"
    l2_bytes = clock.flushed.numel() * 2
    for dtype in options.dtypes.split(","):
        element_bytes = torch.empty(0, dtype=getattr(torch, DTYPES[dtype])).element_size()
        elements = max(2 * max(sizes), 2 * l2_bytes // element_bytes)
        arena = make_input(torch, dtype, elements, clock.device)
        for operation in options.ops.split(","):
            for n in sizes:
                for context in options.contexts.split(","):
                    if context == "graph" and not on_gpu:
                        continue
                    cells += 1
                    if time.perf_counter() - start > options.time:
                        continue
                    try:
                        rows.append(compare(torch, hone, clock, operation, dtype, n, context == "graph", arena, options))
                    except HoneError as error:
                        print(f"{operation} {dtype} n={n}: Hone: {error}", file=sys.stderr)
        del arena
    print_rows(rows)
    print_summary(rows)
    print(f"\n{len(rows)} of {cells} cells in {time.perf_counter() - start:.0f} s, tuning included")
    return rows


def open_all(program, options):
    """PyTorch, Hone, the clock and the device's name, with a stream of its own entered; or the status to end with."""
    try:
        torch = load_torch()
        library = load_library(options.library)
        on_gpu = options.device != "host"
        if on_gpu and not torch.cuda.is_available():
            raise Missing("a CUDA device is missing: torch.cuda.is_available() is False (--device host needs none)")
        hone = Hone(library, options.device, options.cache, options.budget)
    except Missing as missing:
        print(f"{program}: {missing}", file=sys.stderr)
        sys.exit(3)
    except HoneError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
    name, l2_bytes = "host", 4 << 20
    if on_gpu:
        torch.cuda.set_device(options.device)
        properties = torch.cuda.get_device_properties(options.device)
        name, l2_bytes = properties.name, getattr(properties, "L2_cache_size", 64 << 20)
    print(f"{name}, PyTorch {torch.__version__}, {today()}\n", flush=True)
    clock = Clock(torch, options.device if on_gpu else "cpu", l2_bytes)
    if on_gpu:
        # Graphs cannot be captured in the default stream, so that everything runs in another.
        clock.stream = torch.cuda.stream(torch.cuda.Stream())
        clock.stream.__enter__()
    return torch, hone, clock, name


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def main():
    options = parse_arguments()
    torch, hone, clock, name = open_all("reduce_vs_torch", options)
    rows = measure(torch, hone, clock, options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": name, "torch": torch.__version__, "date": today(), "rows": rows}, file, indent=1)
    return 0 if all(row.get("agrees", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
