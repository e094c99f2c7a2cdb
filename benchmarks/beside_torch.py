"""What the comparisons with PyTorch share: the library for Python, the clock, settings, and rows of figures."""
import contextlib
import ctypes
import json
import math
import os
import random
import statistics
import sys
import time
from collections import namedtuple

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool",
}
BATCH_US = 300
MOST_CALLS = 64
LEAST_ROUNDS = 5

Setting = namedtuple("Setting", "context company")  # "stream" or "graph"; "itself", "others" or "nobody"
Timing = namedtuple("Timing", "us spread_us host_share")  # of a call; the host's share of the time of its batch


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
        raise Missing(f"the library is missing: there is no {path}; build the target hone_for_python, and name the "
                      "file with --library or HONE_FOR_PYTHON")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Missing(f"the library cannot be loaded: {error}") from error
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in [
            ("hone_error", text, []),
            ("hone_open", pointer, [text, text, number]),
            ("hone_close", None, [pointer]),
            ("hone_prepare", number,
             [pointer, text, text, text, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint, number]),
            ("hone_result_dtype", text, [pointer, number]),
            ("hone_result_values", ctypes.c_int64, [pointer, number]),
            ("hone_plain_move", pointer, [pointer, pointer, number, pointer, ctypes.c_int64]),
            ("hone_plain_name", text, [pointer]),
            ("hone_plain_enqueue", number, [pointer, pointer, pointer, pointer]),
            ("hone_others", number, [pointer, pointer]),
            ("hone_hold", pointer, [pointer, pointer]),
            ("hone_release", None, [pointer]),
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
        problem = self.library.hone_prepare(self.session, kind.encode(), operation.encode(), dtype.encode(), rows,
                                            columns, alignment, in_graph)
        if problem < 0:
            raise HoneError(self.error())
        return problem

    def result(self, problem):
        """Its dtype's name and how many values it has."""
        return (self.library.hone_result_dtype(self.session, problem).decode(),
                self.library.hone_result_values(self.session, problem))

    def variant(self, problem):
        return self.library.hone_variant(self.session, problem).decode()

    def call(self, problem, first, second, out, stream):
        """A function of no arguments that enqueues one call, with everything converted beforehand."""
        return self.enqueuing(self.library.hone_launch, ctypes.c_void_p(self.session), ctypes.c_int(problem),
                              ctypes.c_void_p(first), ctypes.c_void_p(second), ctypes.c_void_p(out),
                              ctypes.c_void_p(stream))

    def plain(self, addresses, out, size_bytes, stream):
        """The name of the fastest plain read, or copy to `out` unless that is 0, and its calls, one for each address.
        All are multiples of 16. It is found by trying many, in another stream: nothing may be in flight."""
        inputs = (ctypes.c_void_p * len(addresses))(*addresses)
        move = self.library.hone_plain_move(self.session, inputs, len(addresses), out, size_bytes)
        if not move:
            raise HoneError(self.error())
        calls = [self.enqueuing(self.library.hone_plain_enqueue, ctypes.c_void_p(move), ctypes.c_void_p(address),
                                ctypes.c_void_p(out), ctypes.c_void_p(stream)) for address in addresses]
        return self.library.hone_plain_name(move).decode(), calls

    def others(self, stream):
        """The same for the kernel of others that runs between calls. Must be called outside of capture once."""
        return self.enqueuing(self.library.hone_others, ctypes.c_void_p(self.session), ctypes.c_void_p(stream))

    @contextlib.contextmanager
    def holding(self, stream):
        """What is enqueued within runs when all of it has been, or after 10 ms; on the CPU at once."""
        hold = self.library.hone_hold(self.session, stream)
        try:
            yield
        finally:
            self.library.hone_release(hold)

    def enqueuing(self, function, *arguments):
        def enqueue():
            if function(*arguments):
                raise HoneError(self.error())
        return enqueue


class Clock:
    """Batches of calls between two events; on the CPU, between two readings of the processor's clock."""

    def __init__(self, torch, hone, device, l2_bytes):
        self.torch, self.hone, self.device = torch, hone, device
        self.flushed = torch.ones(2 * l2_bytes // 4, dtype=torch.float32, device=device)

    def synchronize(self):
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def stream_handle(self):
        return 0 if self.device == "cpu" else self.torch.cuda.current_stream().cuda_stream

    def batch(self, run, waits):
        """Microseconds of one run, and the share of it in which the host enqueued; 0 where the device `waits` for that.
        A read of twice the cache before it drives the inputs out."""
        self.flushed.sum()
        self.synchronize()
        if self.device == "cpu":
            start = time.perf_counter()
            run()
            return (time.perf_counter() - start) * 1e6, 0.0 if waits else 1.0
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self.hone.holding(self.stream_handle()) if waits else contextlib.nullcontext():
            start.record()
            begin = time.perf_counter()
            run()
            host_us = (time.perf_counter() - begin) * 1e6
            stop.record()
        stop.synchronize()
        us = start.elapsed_time(stop) * 1e3
        return us, 0.0 if waits else host_us / us

    def runner(self, calls, count, setting, others):
        """Runs the first `count` of `calls`, over and over, with kernels of `others` around them; captured once if in a
        graph."""
        def run():
            for turn in range(count):
                if others:
                    others()
                calls[turn % len(calls)]()
            if others:
                others()
        if setting.context != "graph":
            return run
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=self.torch.cuda.current_stream()):
            run()
        return graph.replay

    def race(self, contestants, setting, rounds, cap_ms):
        """The Timing of each: contestants are lists of calls, one for each copy of the input. A batch has as many calls
        of one as of another: what its beginning costs is shared by all of them alike."""
        waits = setting.context == "graph" or setting.company == "nobody"
        others = self.hone.others(self.stream_handle()) if setting.company == "others" else None
        if others:
            others()
        once_us = []
        for calls in contestants:
            calls[0]()
            once = self.runner(calls, 1, setting, others)
            once_us.append(min(self.batch(once, waits)[0] for _ in range(3)))
        most_calls = 1 if setting.company == "nobody" else MOST_CALLS
        count = max(1, min(most_calls, int(BATCH_US / max(min(once_us), 0.1))))
        runs = [self.runner(calls, count, setting, others) for calls in contestants]
        between = self.runner([lambda: None], count, setting, others) if others else None
        samples, shares = [[] for _ in runs], [[] for _ in runs]
        random_order = random.Random(0)
        end = time.perf_counter() + cap_ms / 1e3
        for round_ in range(rounds):
            if round_ >= LEAST_ROUNDS and time.perf_counter() >= end:
                break
            for at in random_order.sample(range(len(runs)), len(runs)):
                others_us = self.batch(between, waits)[0] if between else 0
                us, share = self.batch(runs[at], waits)
                samples[at].append((us - others_us) / count)
                shares[at].append(share)
        return [Timing(statistics.median(of), (sorted(of)[3 * len(of) // 4] - sorted(of)[len(of) // 4]) / 2,
                       statistics.median(share)) for of, share in zip(samples, shares)]


def add_setting_options(parser):
    """--contexts and --company: what calls are launched in, and what among."""
    parser.add_argument("--contexts", default="stream,graph", help="stream, graph (default: both; host: stream alone)")
    parser.add_argument("--company", default="itself,others,nobody",
                        help="itself (back to back), others (kernels between), nobody (default: all)")


def settings_of(options):
    contexts = [name for name in options.contexts.split(",") if name != "graph" or options.device != "host"]
    return [Setting(context, company) for context in contexts for company in options.company.split(",")]


def refuse_unknown(parser, *lists):
    """Each a text with commas in between, and the words that there are."""
    for given, known in lists:
        unknown = [name for name in given.split(",") if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(known)}")


def add_timings(row, setting, hone, peers):
    """The members that rows of all programs have, see common/figures.h. `peers`: {name: (Timing, agrees)}."""
    row.update(context=setting.context, company=setting.company, hone_us=hone.us, hone_spread_us=hone.spread_us,
               host_share=hone.host_share,
               peers={name: {"us": timing.us, "spread_us": timing.spread_us, "host_share": timing.host_share,
                             "ratio": timing.us / hone.us, "agrees": agrees}
                      for name, (timing, agrees) in peers.items()})


def add_ceiling(row, name, plain):
    """Adds Hone's share of the least time in which anyone moved a row's bytes to the row, which has its timings.
    `plain` is the Timing of the plain read or copy of that name."""
    us, by = least_time(name, plain.us, row["hone_us"], row["peers"])
    row.update(plain=name, plain_us=plain.us)
    if row["hone_us"] > 0:
        row.update(ceiling_us=us, ceiling_by=by, percent_of_ceiling=100 * us / row["hone_us"])


def share_text(row):
    """The column '% ceil' of a table, seven characters wide."""
    return f"{row['percent_of_ceiling']:>7.1f}" if "percent_of_ceiling" in row else f"{'-':>7}"


def least_time(plain, plain_us, hone_us, peers):
    """The least time in which anyone moved a cell's bytes, and who did: the plain read or copy, Hone, or a peer whose
    result agrees. Among others, what a call adds may be nothing or less, which does not count."""
    right = [(peer["us"], name) for name, peer in peers.items() if peer["agrees"]]
    times = [(plain_us, plain), (hone_us, "Hone"), *right]
    return min((time for time in times if time[0] > 0), default=(math.nan, ""))


def run_of(torch, name, options, key):
    """What a run says about itself, with an empty list of rows."""
    return {"device": name, "driver": "", "cuda": torch.version.cuda or "", "torch": torch.__version__, "date": today(),
            "budget_ms": options.budget, "key": [*key, "context", "company"], "rows": []}


def write_json(path, run):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(run, file, indent=1)


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


def parse_sizes(text):
    sizes = []
    for part in text.split(","):
        base, _, more = part.partition("+")
        size = 2 ** int(base[2:]) if base.startswith("2^") else int(base)
        sizes.append(size + int(more or 0))
    return sizes


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


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
    clock = Clock(torch, hone, options.device if on_gpu else "cpu", l2_bytes)
    if on_gpu:
        # Graphs cannot be captured in the default stream, so that everything runs in another.
        clock.stream = torch.cuda.stream(torch.cuda.Stream())
        clock.stream.__enter__()
    return torch, hone, clock, name


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())
