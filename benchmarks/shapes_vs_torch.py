#!/usr/bin/env python3
"""Hone's reductions of rows and columns, softmax, RMS norms, transposes and copies next to PyTorch's, cuBLAS's
(transposes of f32 and f64), Liger's and QuACK's (softmax, RMS norms, logsumexp of rows), on the same tensors, streams
and clock, as a share of what anyone could read or copy. Rows are printed as they come. See benchmarks/README.md."""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

from beside_torch import (DTYPES, MOST_CALLS, HoneError, add_ceiling, add_setting_options, add_timings,
                          geometric_mean, make_input, open_all, parse_sizes, refuse_unknown, run_of, settings_of,
                          share_text, write_json)
from torch_peers import KINDS, Calls, load_peers, one_line


class Operation:
    """One kind of call: Hone's names for it, PyTorch's function, whether its ceiling is a copy (else a read), and
    whether it has a weight for each column, which is read as if it were another row."""

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
        for dtype, context in itertools.product(options.dtypes.split(","), options.contexts.split(",")):
            problem = {"family": operation.kind, "dtype": MOVED_DTYPES[dtype] if operation.exact else dtype,
                       "size": list(dict.fromkeys(shapes)), "context": context}
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
    ours = ours.reshape(theirs.shape)
    if operation.exact:
        return bool(torch.equal(ours, theirs))
    return bool(torch.allclose(ours.to(torch.float32), theirs.to(torch.float32), rtol=2e-2, atol=1e-6,
                               equal_nan=True))


def reference_of(torch, operation, x, second):
    """What is right: the elements themselves, or what PyTorch computes in f64."""
    if operation.exact:
        return operation.function(torch, x, x.dtype, *second)
    return operation.function(torch, x.double(), torch.float64, *second)


def planned_calls(torch, peers, name, dtype, inputs, result_dtype, second, options):
    """{peer: Calls} of PyTorch and of those that have the operation; and {peer: why} of those that refuse this one."""
    function = OPERATIONS[name].function
    planned = {"PyTorch": Calls([lambda x=x: function(torch, x, result_dtype, *second) for x in inputs])}
    if options.compile:
        torch.compiler.reset()
        compiled = torch.compile(lambda x: function(torch, x, result_dtype, *second), mode="max-autotune-no-cudagraphs",
                                 dynamic=False)
        planned["compiled"] = Calls([lambda x=x: compiled(x) for x in inputs])
    failed = {}
    for peer in peers:
        if name not in peer.OPERATIONS or dtype not in peer.DTYPES:
            continue
        try:
            planned[peer.NAME] = peer.plan(name, dtype, inputs, second)
        except Exception as error:  # whatever a peer's compiler does, the others are compared
            failed[peer.NAME] = one_line(error)
    return planned, failed


def rehearse(clock, planned, failed, setting, is_right):
    """{peer: whether its result is right}, of one call each. Who fails, or cannot be captured, goes to `failed`."""
    right = {}
    for peer, calls in planned.items():
        try:
            right[peer] = is_right(calls.finish(calls.calls[0]()))
            clock.runner(calls.calls, 1, setting, None)()
            clock.synchronize()
        except Exception as error:
            right.pop(peer, None)
            failed[peer] = one_line(error)
    return right


def compare(torch, hone, clock, peers, name, dtype, shape, setting, arena, options):
    """One row."""
    operation, (rows, columns), element_bytes = OPERATIONS[name], shape, arena.element_size()
    n = rows * columns
    stride = -(-n * element_bytes // STRIDE_BYTES) * STRIDE_BYTES // element_bytes
    copies = max(1, min(MOST_CALLS, arena.numel() // stride))
    inputs = [arena[copy * stride:copy * stride + n].view(rows, columns) for copy in range(copies)]
    start = time.perf_counter()
    problem = hone.prepare(operation.operation, dtype, shape, 16, setting.context == "graph", operation.kind)
    tuning_s = time.perf_counter() - start
    result_dtype, values = hone.result(problem)
    torch_dtype = arena.dtype if operation.exact else getattr(torch, DTYPES[result_dtype])
    out = torch.zeros(n if operation.exact else values, dtype=torch_dtype, device=arena.device)
    stream = clock.stream_handle()
    second = (arena[-columns - STRIDE_BYTES:][:columns].clone(),) if operation.weighted else ()
    ours = [hone.call(problem, x.data_ptr(), second[0].data_ptr() if second else 0, out.data_ptr(), stream)
            for x in inputs]

    row = {"operation": name, "dtype": dtype, "rows": rows, "columns": columns, "variant": hone.variant(problem),
           "tuning_s": round(tuning_s, 2)}
    ours[0]()
    clock.synchronize()
    reference = reference_of(torch, operation, inputs[0], second)
    row["is_right"] = agree(torch, operation, out, reference)
    planned, failed = planned_calls(torch, peers, name, dtype, inputs, torch_dtype, second, options)
    right = rehearse(clock, planned, failed, setting, lambda result: agree(torch, operation, result, reference))
    del reference
    moved = n * element_bytes + out.numel() * out.element_size()
    # A copy moves what a call that writes as much as it reads does; else as many bytes are read.
    readable = (arena.numel() - (copies - 1) * stride) * element_bytes
    plain_name, plain = hone.plain([x.data_ptr() for x in inputs], out.data_ptr() if operation.copies else 0,
                                   n * element_bytes if operation.copies else min(moved, readable), stream)
    contestants = [ours, *(planned[peer].calls for peer in right), plain]
    of_hone, *of_peers, of_plain = clock.race(contestants, setting, options.rounds, options.cell_ms)
    add_timings(row, setting, of_hone,
                {peer: (timing, right[peer]) for peer, timing in zip(right, of_peers)})
    add_ceiling(row, plain_name, of_plain)
    row.update(bytes=moved, gbps=moved / of_hone.us * 1e-3, failed_peers=failed)
    return row


HEADLINE = (f"{'operation':<17}{'dtype':<6}{'shape':>18} {'in':<7}{'among':<7}{'Hone us':>10}{'GB/s':>7}{'% ceil':>7}"
            f"{'tuned':>7}  peers: us, ratio")


def row_text(row):
    shape = f"{row['rows']} x {row['columns']}"
    start = f"{row['operation']:<17}{row['dtype']:<6}{shape:>18} {row['context']:<7}{row['company']:<7}"
    if "failed" in row:
        return f"{start}  FAILED: {row['failed']}"
    off = " and ".join(name for name, peer in row["peers"].items() if not peer["agrees"])
    note = "  DIFFERENT RESULTS" if not row["is_right"] else f"  {off}'s result is off" if off else ""
    note += "".join(f"  {name} failed: {why}" for name, why in row["failed_peers"].items())
    peers = "".join(f"  {name} {peer['us']:.1f} {peer['ratio']:.2f}" for name, peer in row["peers"].items())
    return (f"{start}{row['hone_us']:>10.1f}{row['gbps']:>7.0f}{share_text(row)}"
            f"{row['tuning_s']:>6.1f}s{peers}{note}")


def summary_text(rows):
    """By peer, setting, operation and dtype: ratios, and the share of the ceiling where there are more than 64 MiB."""
    text = ("\nPeer's time / Hone time: geometric mean, worst; % of the ceiling (the least time in which anyone read "
            "as many bytes;\nof softmax, transpose and copy, copied them) where more than 64 MiB are moved: mean, "
            "worst\n")
    groups = {}
    for row in rows:
        for name, peer in row.get("peers", {}).items():
            for operation in (row["operation"], "all"):
                group = (name, row["context"], row["company"], operation, row["dtype"])
                groups.setdefault(group, []).append((peer["ratio"], row))
    for group, chosen in groups.items():
        ratios = [ratio for ratio, _ in chosen]
        shares = [row["percent_of_ceiling"] for _, row in chosen
                  if row["bytes"] > 64 << 20 and "percent_of_ceiling" in row]
        name, context, company, operation, dtype = group
        text += (f"  {name:<9}{context:<7}{company:<7}{operation:<17}{dtype:<5}{geometric_mean(ratios):>7.2f}"
                 f"{min(ratios):>7.2f} of {len(ratios):<3}")
        text += f"{sum(shares) / len(shares):>8.1f}{min(shares):>7.1f} of {len(shares)}\n" if shares else "\n"
    return text


def parse_arguments(arguments=None):
    default_library = os.environ.get("HONE_FOR_PYTHON", "build/gpu/benchmarks/libhone_for_python.so")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=default_library,
                        help=f"libhone_for_python.so (default: {default_library})")
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or host: PyTorch on the CPU and Hone's host device")
    parser.add_argument("--ops", default=",".join(DEFAULT_OPERATIONS),
                        help=f"of {','.join(OPERATIONS)} (default: all but column_softmax)")
    parser.add_argument("--dtypes", default="f32,f16", help="of f16,bf16,f32,f64 (default: f32,f16)")
    parser.add_argument("--shapes", default=DEFAULT_SHAPES,
                        help="rows x columns: 1024x64,2^20+1x2^6 (default: ten, see below)")
    parser.add_argument("--peers", default=",".join(KINDS),
                        help=f"besides PyTorch, of {','.join(KINDS)} (default: all)")
    parser.add_argument("--compile", action="store_true",
                        help="PyTorch by torch.compile, max-autotune, as a further peer")
    add_setting_options(parser)
    parser.add_argument("--budget", type=int, default=400, help="tuning time a problem, in ms (default: 400)")
    parser.add_argument("--hone", help="tune all cells by this hone command first, instead of each when it comes")
    parser.add_argument("--cache", default="", help="Hone's cache file (default: none, with --hone a temporary one)")
    parser.add_argument("--rounds", type=int, default=15, help="batches of each in a cell, at most (default: 15)")
    parser.add_argument("--cell-ms", type=float, default=60,
                        help="time a cell, in ms, after five batches (default: 60)")
    parser.add_argument("--time", type=float, default=500, help="begin no cell after so many seconds (default: 500)")
    parser.add_argument("--json", help="write every row to this file, after each cell")
    parser.epilog = f"Default shapes: {DEFAULT_SHAPES}"
    options = parser.parse_args(arguments)
    refuse_unknown(parser, (options.ops, OPERATIONS), (options.dtypes, ("f16", "bf16", "f32", "f64")),
                   (options.peers, ("", *KINDS)), (options.contexts, ("stream", "graph")),
                   (options.company, ("itself", "others", "nobody")))
    options.shapes = parse_shapes(options.shapes)
    return options


def tuned_by(options, rows):
    """Who tuned these cells: a session takes no winner that the hone command of another build tuned."""
    if not options.hone:
        return "session"
    here = sum(row.get("tuning_s", 0) * 1000 > options.budget / 2 for row in rows)
    return "hone tune" if here == 0 else f"hone tune, but {here} cells by the session: HONE is of another build"


def measure(torch, hone, clock, options, run):
    """Fills run["rows"]."""
    start, rows, cells = time.perf_counter(), run["rows"], 0
    names, dtypes = options.ops.split(","), options.dtypes.split(",")
    asked = [peer for peer in options.peers.split(",") if peer]
    peers, run["missing_peers"] = load_peers(torch, asked, names, options.device != "host")
    run["peers"] = {peer.NAME: peer.version for peer in peers}
    for peer, version in run["peers"].items():
        print(f"peer {peer} {version}")
    for peer, why in run["missing_peers"].items():
        print(f"peer {peer} is missing: {why}")
    print(HEADLINE, flush=True)
    l2_bytes = clock.flushed.numel() * 2
    for dtype in dtypes:
        element_bytes = torch.empty(0, dtype=getattr(torch, DTYPES[dtype])).element_size()
        largest = max(rows_ * columns for rows_, columns in options.shapes)
        arena = make_input(torch, dtype, 2 * largest + 4 * l2_bytes // element_bytes + STRIDE_BYTES, clock.device)
        for name, shape, setting in itertools.product(names, options.shapes, settings_of(options)):
            cells += 1
            if time.perf_counter() - start > options.time:
                continue
            try:
                row = compare(torch, hone, clock, peers, name, dtype, shape, setting, arena, options)
            except (HoneError, RuntimeError) as error:
                row = {"operation": name, "dtype": dtype, "rows": shape[0], "columns": shape[1], **setting._asdict(),
                       "failed": str(error).splitlines()[0]}
            rows.append(row)
            run["tuned_by"] = tuned_by(options, rows)
            print(row_text(row), flush=True)
            write_json(options.json, run)
        del arena
    print(summary_text(rows))
    by = tuned_by(options, rows)
    print(f"{len(rows)} of {cells} cells in {time.perf_counter() - start:.0f} s, tuned by {by}")


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        if options.hone:
            options.cache = options.cache or os.path.join(folder, "cache.sqlite")
            tune(options, folder)
        torch, hone, clock, name = open_all("shapes_vs_torch", options)
        run = run_of(torch, name, options, ["operation", "dtype", "rows", "columns"])
        run.update(compiled=options.compile)
        measure(torch, hone, clock, options, run)
    return 0 if all(row.get("is_right", False) for row in run["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
