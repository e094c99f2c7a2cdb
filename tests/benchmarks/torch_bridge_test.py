"""Drives libhone_for_python with the classes of beside_torch.py, on arrays of ctypes: LIBRARY FOLDER HONE."""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import types

sys.path.insert(0, sys.argv[2])
import beside_torch as bench  # noqa: E402
import reduce_vs_torch  # noqa: E402

hone = bench.Hone(bench.load_library(sys.argv[1]), "host", "", 50)

values = (ctypes.c_float * 1000)(*[i % 7 for i in range(1000)])
others = (ctypes.c_float * 1000)(*[2] * 1000)


def result_of(operation, dtype, c_type, in_graph):
    problem = hone.prepare(operation, dtype, (1, 1000), 4, in_graph)
    name, count = hone.result(problem)
    assert name == dtype_of_result[operation], (operation, name)
    out = (c_type * count)()
    hone.call(problem, ctypes.addressof(values), ctypes.addressof(others), ctypes.addressof(out), 0)()
    assert hone.variant(problem).startswith("block_threads="), hone.variant(problem)
    return list(out)


dtype_of_result = {"sum": "f32", "argmax": "i64", "minmax": "f32", "dot": "f32", "any": "bool"}
for graph in (0, 1):
    assert result_of("sum", "f32", ctypes.c_float, graph) == [sum(values)]
    assert result_of("argmax", "f32", ctypes.c_int64, graph) == [6]
    assert result_of("minmax", "f32", ctypes.c_float, graph) == [0, 6]
    assert result_of("dot", "f32", ctypes.c_float, graph) == [2 * sum(values)]
    assert result_of("any", "f32", ctypes.c_bool, graph) == [True]

for operation, dtype, said in (("summ", "f32", "no reduction 'summ'"), ("sum", "f33", "f33"),
                               ("logsumexp", "i8", "i8")):
    try:
        hone.prepare(operation, dtype, (1, 1000), 4, 0)
    except bench.HoneError as error:
        assert said in str(error), error
    else:
        raise AssertionError(f"{operation} of {dtype} was accepted")
try:
    hone.call(hone.prepare("sum", "f32", (1, 1000), 4, 0), 0, 0, 0, 0)()
except bench.HoneError as error:
    assert "null" in str(error), error
else:
    raise AssertionError("a null pointer was accepted")

# Winners are in the cache file at once; one that cannot be used is named on stderr.
with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as complaints:
    stderr = os.dup(2)
    os.dup2(complaints.fileno(), 2)
    for name in ("winners", "winners/in_no_folder"):
        cache = os.path.join(folder, name)
        cached = bench.Hone(hone.library, "host", cache, 50)
        cached.prepare("sum", "f32", (1, 1000), 4, 0)
        complaints.seek(0)
        said = complaints.read()
        assert os.path.exists(cache) if name == "winners" else cache in said, (name, said)
        assert said == "" or name != "winners", said
    os.dup2(stderr, 2)

assert bench.parse_sizes("1000,2^20,2^4+1") == [1000, 1 << 20, 17]
assert reduce_vs_torch.agree("sum", [1.0], [1.001]) and not reduce_vs_torch.agree("sum", [1.0], [1.1])


class Ones:
    """What the clock asks of PyTorch's tensors on the CPU."""

    def sum(self):
        pass


def enqueued_in(context, company):
    """Who is enqueued in a batch of at most three calls, in order: 'c' a call, 'o' a kernel of others."""
    order = ""

    class Others(bench.Hone):
        def others(self, stream):
            run = super().others(stream)

            def enqueue():
                nonlocal order
                run()
                order += "o"
            return enqueue

    def call():
        nonlocal order
        order += "c"
    torch = types.SimpleNamespace(ones=lambda *args, **kwargs: Ones(), float32=None)
    other = Others(hone.library, "host", "", 50)
    clock = bench.Clock(torch, other, "cpu", 4096)
    bench.MOST_CALLS, bench.BATCH_US = 3, 1e9
    (timing,) = clock.race([[call]], bench.Setting(context, company), 1, 1e6)
    assert timing.host_share == (1 if company != "nobody" else 0)
    return order


assert enqueued_in("stream", "itself").endswith("ccc")
assert enqueued_in("stream", "others").endswith("oooo" "ocococo")
assert enqueued_in("stream", "nobody") == "ccccc", "one, three to see how long one takes, and one to time"

row = {}
bench.add_timings(row, bench.Setting("graph", "others"), bench.Timing(2.0, 0.1, 0.0),
                  {"A": (bench.Timing(3.0, 0.2, 0.5), True)})
assert row["context"] == "graph" and row["company"] == "others" and row["hone_us"] == 2.0
assert row["peers"] == {"A": {"us": 3.0, "spread_us": 0.2, "host_share": 0.5, "ratio": 1.5, "agrees": True}}

# The ceiling is the least time of whoever is right; among others, a call may add nothing.
row["peers"]["B"] = {"us": 0.5, "agrees": False}
bench.add_ceiling(row, "bulk read", bench.Timing(1.5, 0.1, 0.0))
assert (row["ceiling_us"], row["ceiling_by"], row["percent_of_ceiling"]) == (1.5, "bulk read", 75)
bench.add_ceiling(row, "bulk read", bench.Timing(2.5, 0.1, 0.0))
assert (row["ceiling_by"], row["percent_of_ceiling"]) == ("Hone", 100) and bench.share_text(row) == "  100.0"
row["peers"]["A"]["us"] = 1.0
bench.add_ceiling(row, "bulk read", bench.Timing(-0.1, 0.1, 0.0))
assert (row["ceiling_by"], row["percent_of_ceiling"]) == ("A", 50)
nothing = {"hone_us": -0.2, "peers": {}}
bench.add_ceiling(nothing, "bulk read", bench.Timing(1.0, 0.1, 0.0))
assert "ceiling_us" not in nothing and bench.share_text(nothing) == "      -"
with hone.holding(0):
    result_of("sum", "f32", ctypes.c_float, 0)

import shapes_vs_torch as shapes  # noqa: E402
import torch_peers as peers  # noqa: E402

# A matrix of 20 x 50 floats.
for kind in ("transpose", "copy"):
    problem = hone.prepare("", "f32", (20, 50), 4, 0, kind)
    assert hone.result(problem) == ("u32", 1000)
    out = (ctypes.c_float * 1000)()
    hone.call(problem, ctypes.addressof(values), 0, ctypes.addressof(out), 0)()
    expected = [values[r * 50 + c] for c in range(50) for r in range(20)] if kind == "transpose" else list(values)
    assert list(out) == expected
try:
    hone.prepare("", "f32", (20, 50), 4, 0, "transposed")
except bench.HoneError as error:
    assert "'transposed'" in str(error), error
else:
    raise AssertionError("an unknown kind was accepted")

# Plain reads and copies, each chosen for its number of bytes.
aligned = ctypes.addressof(values) // 16 * 16 + 16
name, (first, second) = hone.plain([aligned, aligned + 320], 0, 3200, 0)
assert name.startswith("read, 256 threads x 4 loads"), name
first()
copied = (ctypes.c_float * 1000)()
to = ctypes.addressof(copied) // 16 * 16 + 16
name, (first, second) = hone.plain([aligned, aligned + 320], to, 3200, 0)
assert name.startswith("copy, ") or name == "the device's own copy", name
second()
assert ctypes.string_at(to, 3200) == ctypes.string_at(aligned + 320, 3200)
try:
    hone.plain([aligned], to, -16, 0)
except bench.HoneError as error:
    assert "-16" in str(error), error
else:
    raise AssertionError("a negative number of bytes was copied")

assert shapes.parse_shapes("2^23x8,12289x4097") == [(1 << 23, 8), (12289, 4097)]
for text in ("12", "3x", "0x5", "2x3x4"):
    try:
        shapes.parse_shapes(text)
    except SystemExit as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"the shape {text} was accepted")
options = shapes.parse_arguments(["--ops", "transpose,softmax", "--shapes", "5x7", "--time", "3"])
assert options.shapes == [(5, 7)] and options.time == 3

# All cells are tuned by a campaign whose winners are those that the cells ask for.
with tempfile.TemporaryDirectory() as folder:
    options = shapes.parse_arguments(["--ops", "row_sum,transpose,copy", "--dtypes", "f16", "--shapes", "31x33,33x31",
                                      "--device", "host", "--contexts", "stream", "--budget", "20000",
                                      "--hone", sys.argv[3]])
    assert shapes.campaign(options)["problems"][1:] == [
        {"family": "transpose", "dtype": "u16", "size": ["31x33", "33x31"], "context": "stream"},
        {"family": "copy", "dtype": "u16", "size": ["1x1023"], "context": "stream"}]
    options.cache = os.path.join(folder, "tuned")
    shapes.tune(options, folder)
    inspect = [options.hone, "inspect", "--json", "--cache", options.cache]
    winners = json.loads(subprocess.check_output(inspect))
    tuned = bench.Hone(hone.library, "host", options.cache, 20000)
    for operation in (shapes.OPERATIONS[name] for name in options.ops.split(",")):
        for shape in options.shapes:
            tuned.prepare(operation.operation, "f16", shape, 16, 0, operation.kind)
    assert json.loads(subprocess.check_output(inspect)) == winners, "what the campaign had tuned was tuned again"
    options.hone = os.path.join(folder, "no_hone")
    try:
        shapes.tune(options, folder)
    except SystemExit as error:
        assert "no_hone cannot be started" in str(error), error
    else:
        raise AssertionError("a command that is not there tuned")

# The table, of a cell that was measured and one that was not.
row = {"operation": "transpose", "dtype": "f16", "rows": 12289, "columns": 4097, "variant": "", "tuning_s": 0.4,
       "bytes": 1 << 28, "gbps": 2684.0, "percent_of_ceiling": 89.5, "is_right": True, "failed_peers": {}}
stream = bench.Setting("stream", "itself")
bench.add_timings(row, stream, bench.Timing(100.0, 1.0, 0.0), {"PyTorch": (bench.Timing(250.0, 1.0, 0.0), True)})
assert shapes.row_text(row).split()[:10] == ["transpose", "f16", "12289", "x", "4097", "stream", "itself", "100.0",
                                             "2684", "89.5"]
assert shapes.row_text(row).endswith("PyTorch 250.0 2.50")
wrong = {**row, "peers": {"PyTorch": {**row["peers"]["PyTorch"], "agrees": False}}}
assert "DIFFERENT" in shapes.row_text({**wrong, "is_right": False})
assert shapes.row_text(wrong).endswith("PyTorch's result is off")
assert shapes.row_text({**row, "failed_peers": {"QuACK": "no memory"}}).endswith("2.50  QuACK failed: no memory")
failed = {"operation": "row_sum", "dtype": "f16", "rows": 1, "columns": 2, **stream._asdict(), "failed": "no memory"}
assert "FAILED: no memory" in shapes.row_text(failed)
small = {**row, "bytes": 1 << 20, "percent_of_ceiling": 1.0,
         "peers": {"PyTorch": {**row["peers"]["PyTorch"], "ratio": 10.0}}}
assert ("PyTorch  stream itself transpose        f16     5.00   2.50 of 2      89.5   89.5 of 1"
        in shapes.summary_text([row, small, failed]))

# cublas<t>geam is asked for the transposed of a matrix that it sees as one of columns.
geam, asked = object.__new__(peers.Geam), []
geam.handle = ctypes.c_void_p(7)
geam.library = types.SimpleNamespace(cublasSetStream_v2=lambda handle, stream: 0,
                                     cublasSgeam=lambda *arguments: asked.append(arguments) or 0)
matrix = types.SimpleNamespace(shape=(20, 50), data_ptr=lambda: 64)
geam.call("f32", matrix, types.SimpleNamespace(data_ptr=lambda: 128), 9)()
numbers = [argument.value if hasattr(argument, "value") else None for argument in asked[0]]
assert numbers == [7, 1, 0, 20, 50, None, 64, 50, None, 128, 20, 128, 20], numbers
