#!/usr/bin/env python3
"""Hone's reductions of rows and columns, softmax, RMS norms, transposes and copies next to PyTorch's, on the same
tensors, streams and clock, as a share of what the device can read or copy. Rows are printed as they come. See
benchmarks/README.md."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from reduce_vs_torch import (DTYPES, MOST_CALLS, HoneError, geometric_mean, make_input, open_all, parse_sizes, today)


class Operation:
    """One kind of call: Hone's names for it, PyTorch's function, whether its ceiling is a copy (else a read), and whether
    it has a weight for each column, which is read as if it were another row."""

    def __init__(self, kind, operation, function, copies=False, exact=False, weighted=False):
        self.kind, self.operation, self.function, self.copies, self.exact = kind, operation, function, copies, exact
        self.weighted = weighted


# `dtype` is that of Hone's result, so that both do the same work.
OPERATIONS = {
    "row_sum": Operation("reduce_rows", "sum", lambda torch, x, dtype: torch.sum(x, 1, dtype=dtype)),
    "row_max": Operation("reduce_rows", "max", lambda torch, x, dtype: torch.amax(x, 1)),
    "row_logsumexp": Operation("reduce_rows", "logsumexp", lambda torch, x, dtype: torch.logsumexp(x, 1)),
    "column_sum": Operation("reduce_columns", "sum", lambda torch, x, dtype: torch.sum(x, 0, dtype=dtype)),
    "column_max": Operation("reduce_columns", "max", lambda torch, x, dtype: torch.amax(x, 0)),
    "column_logsumexp": Operation("reduce_columns", "logsumexp", lambda torch, x, dtype: torch.logsumexp(x, 0)),
    "softmax": Operation("softmax", "softmax", lambda torch, x, dtype: torch.softmax(x, 1), copies=True),
    "log_softmax": Operation("softmax", "log_softmax", lambda torch, x, dtype: torch.log_softmax(x, 1), copies=True),
    "column_softmax": Operation("softmax_columns", "softmax", lambda torch, x, dtype: torch.softmax(x, 0), copies=True),
    "rms_norm": Operation("rms_norm", "weighted", lambda torch, x, dtype, weight: torch.nn.functional.rms_norm(
        x, weight.shape, weight.to(x.dtype), 1e-6), copies=True, weighted=True),
    "transpose": Operation("transpose", "", lambda torch, x, dtype: x.t().contiguous(), copies=True, exact=True),
    "copy": Operation("copy", "", lambda torch, x, dtype: x.clone(), copies=True, exact=True),
}
DEFAULT_OPERATIONS = [name for name in OPERATIONS if name != "column_softmax"]
DEFAULT_SHAPES = ("2^23x8,2^20x64,2^16x2^10,2^13x2^13,2^10x2^16,2^6x2^20,4x2^24,"
                  "1000003x7,12289x4097,31x1048577")
STRIDE_BYTES = 256
MOVED_DTYPES = {"f16": "u16", "bf16": "u16", "f32": "u32", "f64": "u64"}  # elements that are only moved are bits


def parse_shapes(text):
    """"1024x64,2^20+1x8" as pairs of rows and columns."""
    shapes = []
    for part in text.split(","):
        sides = part.split("x")
        try:
            if len(sides) != 2:
                raise ValueError
            rows, columns = (parse_sizes(side)[0] for side in sides)
        except ValueError:
            raise SystemExit(f"shapes_vs_torch: '{part}' is no shape; write 1024x64 or 2^20+1x2^6") from None
        if rows < 1 or columns < 1:
            raise SystemExit(f"shapes_vs_torch: '{part}' has no elements")
        shapes.append((rows, columns))
    return shapes


def campaign(options):
    """All cells as what `hone tune --file` takes."""
    problems = []
    for operation in (OPERATIONS[name] for name in options.ops.split(",")):
        shapes = [f"1x{rows * columns}" if operation.kind == "copy" else f"{rows}x{columns}"
                  for rows, columns in options.shapes]
        for dtype in options.dtypes.split(","):
            problem = {"family": operation.kind, "dtype": MOVED_DTYPES[dtype] if operation.exact else dtype,
                       "size": list(dict.fromkeys(shapes)), "context": options.context}
            if operation.operation:
                problem["op"] = operation.operation
            problems.append(problem)
    return {"budget": f"{options.budget}ms", "problems": problems}


def tune(options, folder):
    """Fills the cache by `hone tune`, which compiles in many processes; every cell keeps a winner of its own."""
    path = os.path.join(folder, "campaign.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(campaign(options), file)
    command = [options.hone, "tune", "--file", path, "--cache", options.cache, "--device", options.device,
               "--regret", "0", "--quiet"]
    try:
        status = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    except OSError as error:
        raise SystemExit(f"shapes_vs_torch: {options.hone} cannot be started: {error.strerror}") from None
    if status not in (0, 6):  # 6: of some problems, which their cells will tell
        raise SystemExit(f"shapes_vs_torch: {' '.join(command)} ended with {status}")


def agree(torch, operation, ours, theirs):
    """Exactly where elements are only moved, else up to rounding, also to 16 bits."""
    ours = ours.view(theirs.shape)
    if operation.exact:
        return bool(torch.equal(ours, theirs))
    return bool(torch.allclose(ours.to(torch.float32), theirs.to(torch.float32), rtol=2e-2, atol=1e-6,
                               equal_nan=True))


def torch_function(torch, operation, options):
    """PyTorch's function of a matrix, the dtype of its result and what else it takes; with --compile for this shape."""
    def function(*arguments):
        return operation.function(torch, *arguments)
    if not options.compile:
        return function
    torch.compiler.reset()
    return torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False)


def compare(torch, hone, clock, name, dtype, shape, arena, options):
    """One row."""
    operation, (rows, columns), element_bytes = OPERATIONS[name], shape, arena.element_size()
    n = rows * columns
    stride = -(-n * element_bytes // STRIDE_BYTES) * STRIDE_BYTES // element_bytes
    copies = max(1, min(MOST_CALLS, arena.numel() // stride))
    inputs = [arena[copy * stride:copy * stride + n].view(rows, columns) for copy in range(copies)]
    start = time.perf_counter()
    problem = hone.prepare(operation.operation, dtype, shape, 16, options.context == "graph", operation.kind)
    tuning_s = time.perf_counter() - start
    result_dtype, values = hone.result(problem)
    torch_dtype = arena.dtype if operation.exact else getattr(torch, DTYPES[result_dtype])
    out = torch.zeros(n if operation.exact else values, dtype=torch_dtype, device=arena.device)
    stream = 0 if clock.device == "cpu" else torch.cuda.current_stream().cuda_stream
    second = (arena[-columns - STRIDE_BYTES:][:columns].clone(),) if operation.weighted else ()
    ours = [hone.call(problem, x.data_ptr(), second[0].data_ptr() if second else 0, out.data_ptr(), stream)
            for x in inputs]
    function = torch_function(torch, operation, options)
    theirs = [lambda x=x: function(x, torch_dtype, *second) for x in inputs]
    contestants = [ours, theirs]
    if operation.copies:
        copied = torch.empty_like(inputs[0])
        contestants.append([lambda x=x: copied.copy_(x) for x in inputs])
    else:
        contestants.append([hone.read(x.data_ptr(), n * element_bytes, stream) for x in inputs])

    row = {"operation": name, "dtype": dtype, "rows": rows, "columns": columns, "context": options.context,
           "variant": hone.variant(problem), "tuning_s": round(tuning_s, 2)}
    ours[0]()
    clock.synchronize()
    row["agrees"] = agree(torch, operation, out, theirs[0]())
    if not row["agrees"] and not operation.exact:
        exact = operation.function(torch, inputs[0].double(), torch.float64, *second)
        row["agrees_with_f64"] = agree(torch, operation, out, exact)
    hone_us, torch_us, ceiling_us = clock.race(contestants, options.context == "graph", options.rounds, options.cell_ms)
    moved = n * element_bytes + out.numel() * out.element_size()
    gbps = moved / hone_us * 1e-3
    ceiling = (2 if operation.copies else 1) * n * element_bytes / ceiling_us * 1e-3
    row.update(bytes=moved, hone_us=hone_us, torch_us=torch_us, ratio=torch_us / hone_us, gbps=gbps,
               torch_gbps=moved / torch_us * 1e-3, ceiling_gbps=ceiling, percent_of_ceiling=100 * gbps / ceiling)
    return row


HEADLINE = (f"{'operation':<17}{'dtype':<6}{'shape':>18}{'Hone us':>10}{'GB/s':>7}{'% ceil':>7}{'torch us':>11}{'GB/s':>7}"
            f"{'ratio':>8}{'tuned':>8}")


def is_right(row):
    """Whether Hone's result is PyTorch's, or what PyTorch computes in f64."""
    return row.get("agrees", False) or row.get("agrees_with_f64", False)


def row_text(row):
    shape = f"{row['rows']} x {row['columns']}"
    start = f"{row['operation']:<17}{row['dtype']:<6}{shape:>18}"
    if "failed" in row:
        return f"{start}  FAILED: {row['failed']}"
    note = "" if row["agrees"] else "  PyTorch's result is off" if is_right(row) else "  DIFFERENT RESULTS"
    return (f"{start}{row['hone_us']:>10.1f}{row['gbps']:>7.0f}{row['percent_of_ceiling']:>7.1f}{row['torch_us']:>11.1f}"
            f"{row['torch_gbps']:>7.0f}{row['ratio']:>8.2f}{row['tuning_s']:>7.1f}s{note}")


def summary_text(rows):
    """By operation and dtype: ratios to PyTorch, and the share of the ceiling where there are more than 64 MiB."""
    text = ("\nPyTorch time / Hone time: geometric mean, worst; % of the ceiling (a plain read of the matrix; of softmax, "
            "transpose\nand copy the device's copy of it) where more than 64 MiB are moved: mean, worst\n")
    measured = [row for row in rows if "ratio" in row]
    for name in list(OPERATIONS) + ["all"]:
        for dtype in sorted({row["dtype"] for row in measured}, reverse=True):
            chosen = [row for row in measured if row["dtype"] == dtype and name in (row["operation"], "all")]
            if not chosen:
                continue
            ratios = [row["ratio"] for row in chosen]
            shares = [row["percent_of_ceiling"] for row in chosen if row["bytes"] > 64 << 20]
            text += f"  {name:<17}{dtype:<5}{geometric_mean(ratios):>7.2f}{min(ratios):>7.2f} of {len(ratios):<3}"
            if shares:
                text += f"{sum(shares) / len(shares):>8.1f}{min(shares):>7.1f} of {len(shares)}"
            text += "\n"
    return text


def parse_arguments(arguments=None):
    default_library = os.environ.get("HONE_FOR_PYTHON", "build/gpu/benchmarks/libhone_for_python.so")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=default_library, help=f"libhone_for_python.so (default: {default_library})")
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or host: PyTorch on the CPU and Hone's host device")
    parser.add_argument("--ops", default=",".join(DEFAULT_OPERATIONS),
                        help=f"of {','.join(OPERATIONS)} (default: all but column_softmax)")
    parser.add_argument("--dtypes", default="f32,f16", help="of f16,bf16,f32,f64 (default: f32,f16)")
    parser.add_argument("--shapes", default=DEFAULT_SHAPES, help="rows x columns: 1024x64,2^20+1x2^6 (default: ten, see below)")
    parser.add_argument("--compile", action="store_true", help="PyTorch's side by torch.compile, max-autotune")
    parser.add_argument("--context", default="stream", choices=("stream", "graph"), help="default: stream")
    parser.add_argument("--budget", type=int, default=400, help="tuning time a problem, in ms (default: 400)")
    parser.add_argument("--hone", help="tune all cells by this hone command first, instead of each when it comes")
    parser.add_argument("--cache", default="", help="Hone's cache file (default: none, with --hone a temporary one)")
    parser.add_argument("--rounds", type=int, default=15, help="batches of each in a cell, at most (default: 15)")
    parser.add_argument("--cell-ms", type=float, default=60, help="time a cell, in ms, after five batches (default: 60)")
    parser.add_argument("--time", type=float, default=500, help="begin no cell after so many seconds (default: 500)")
    parser.add_argument("--json", help="write every row to this file, after each cell")
    parser.epilog = f"Default shapes: {DEFAULT_SHAPES}"
    options = parser.parse_args(arguments)
    for given, known in ((options.ops, OPERATIONS), (options.dtypes, ("f16", "bf16", "f32", "f64"))):
        unknown = [name for name in given.split(",") if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(known)}")
    options.shapes = parse_shapes(options.shapes)
    if options.device == "host" and options.context == "graph":
        parser.error("PyTorch has no graphs on the CPU")
    return options


def measure(torch, hone, clock, options, run):
    """Fills run["rows"]."""
    start, rows, cells = time.perf_counter(), run["rows"], 0
    names, dtypes = options.ops.split(","), options.dtypes.split(",")
    l2_bytes = clock.flushed.numel() * 2
    for dtype in dtypes:
        element_bytes = torch.empty(0, dtype=getattr(torch, DTYPES[dtype])).element_size()
        largest = max(rows_ * columns for rows_, columns in options.shapes)
        arena = make_input(torch, dtype, 2 * largest + 4 * l2_bytes // element_bytes + STRIDE_BYTES, clock.device)
        clock.synchronize()  # Hone reads in another stream
        read_gbps = hone.read_ceiling_gbps(arena.data_ptr(), arena.numel() * element_bytes // 16 * 16)
        run["read_gbps"][dtype] = read_gbps
        print(f"read ceiling {read_gbps:.0f} GB/s, of {arena.numel() * element_bytes >> 20} MiB\n{HEADLINE}", flush=True)
        for name in names:
            for shape in options.shapes:
                cells += 1
                if time.perf_counter() - start > options.time:
                    continue
                try:
                    row = compare(torch, hone, clock, name, dtype, shape, arena, options)
                except (HoneError, RuntimeError) as error:
                    row = {"operation": name, "dtype": dtype, "rows": shape[0], "columns": shape[1],
                           "failed": str(error).splitlines()[0]}
                rows.append(row)
                print(row_text(row), flush=True)
                write_json(options.json, run)
        del arena
    print(summary_text(rows))
    tuning = "not counting hone tune" if options.hone else "tuning included"
    print(f"{len(rows)} of {cells} cells in {time.perf_counter() - start:.0f} s, {tuning}")


def write_json(path, run):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(run, file, indent=1)


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        if options.hone:
            options.cache = options.cache or os.path.join(folder, "cache.sqlite")
            tune(options, folder)
        torch, hone, clock, name = open_all("shapes_vs_torch", options)
        run = {"device": name, "torch": torch.__version__, "date": today(), "context": options.context,
               "compiled": options.compile,
               "budget_ms": options.budget, "tuned_by": "hone tune" if options.hone else "session", "read_gbps": {},
               "rows": []}
        measure(torch, hone, clock, options, run)
    return 0 if all(is_right(row) for row in run["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
