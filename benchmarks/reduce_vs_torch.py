#!/usr/bin/env python3
"""Hone's reductions next to PyTorch's, on the same tensors, streams and clock. See benchmarks/README.md."""
import argparse
import itertools
import math
import os
import sys
import time

from beside_torch import (DTYPES, MOST_CALLS, HoneError, add_ceiling, add_setting_options, add_timings,
                          geometric_mean, make_input, open_all, parse_sizes, refuse_unknown, run_of, settings_of,
                          share_text, write_json)

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


def compare(torch, hone, clock, operation, dtype, n, setting, arena, options):
    """One row, or the reason why there is none."""
    copies = max(1, min(MOST_CALLS, arena.numel() // n))
    inputs = [arena[copy * n:(copy + 1) * n] for copy in range(copies)]
    alignment = 16 if all(x.data_ptr() % 16 == 0 for x in inputs) else arena.element_size()
    problem = hone.prepare(operation, dtype, (1, n), alignment, setting.context == "graph")
    result_dtype, values = hone.result(problem)
    torch_dtype = getattr(torch, DTYPES[result_dtype])
    out = torch.zeros(values, dtype=torch_dtype, device=arena.device)
    stream = clock.stream_handle()
    ours = [hone.call(problem, x.data_ptr(), inputs[(i + 1) % copies].data_ptr(), out.data_ptr(), stream)
            for i, x in enumerate(inputs)]
    function = OPERATIONS[operation]
    theirs = [lambda x=x, y=inputs[(i + 1) % copies]: function(torch, x, y, torch_dtype) for i, x in enumerate(inputs)]

    row = {"operation": operation, "dtype": dtype, "n": n, **setting._asdict(), "variant": hone.variant(problem)}
    try:
        expected = values_of(theirs[0]())
    except (RuntimeError, NotImplementedError, TypeError) as error:
        row["torch_lacks_it"] = str(error).splitlines()[0]
        return row
    ours[0]()
    clock.synchronize()
    agrees = agree(operation, values_of(list(out)), expected)
    moved = n * arena.element_size() * (2 if operation == "dot" else 1)
    # A dot product reads the next array, too; behind the last one may be nothing.
    addresses = [x.data_ptr() // 16 * 16 for x in (inputs[:-1] if operation == "dot" else inputs)]
    name, plain = hone.plain(addresses, 0, moved, stream)
    of_hone, of_torch, of_plain = clock.race([ours, theirs, plain], setting, options.rounds, options.cell_ms)
    add_timings(row, setting, of_hone, {"PyTorch": (of_torch, agrees)})
    add_ceiling(row, name, of_plain)
    row["hone_gbps"] = moved / of_hone.us * 1e-3
    return row


def print_rows(rows):
    print(f"{'operation':<15}{'dtype':<6}{'n':>11} {'in':<7}{'among':<7}{'Hone us':>10}{'GB/s':>7}{'% ceil':>7}"
          f"{'torch us':>10}"
          f"{'ratio':>7}")
    for row in rows:
        start = f"{row['operation']:<15}{row['dtype']:<6}{row['n']:>11} {row['context']:<7}{row['company']:<7}"
        if "torch_lacks_it" in row:
            print(f"{start} not in PyTorch: {row['torch_lacks_it']}")
            continue
        peer = row["peers"]["PyTorch"]
        note = "" if peer["agrees"] else "  DIFFERENT RESULTS"
        print(f"{start}{row['hone_us']:>10.2f}{row['hone_gbps']:>7.0f}{share_text(row)}{peer['us']:>10.2f}"
              f"{peer['ratio']:>7.2f}{note}")


def print_summary(rows, settings):
    print("\nPyTorch time / Hone time: geometric mean (worst of how many)")
    for setting in settings:
        for name in list(OPERATIONS) + ["all"]:
            ratios = [row["peers"]["PyTorch"]["ratio"] for row in rows if "peers" in row
                      and (row["context"], row["company"]) == setting and name in (row["operation"], "all")]
            if ratios:
                print(f"  {setting.context:<7}{setting.company:<7} {name:<15} {geometric_mean(ratios):.2f} "
                      f"(worst {min(ratios):.2f} of {len(ratios)})")


def parse_arguments():
    default_library = os.environ.get("HONE_FOR_PYTHON", "build/gpu/benchmarks/libhone_for_python.so")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=default_library,
                        help=f"libhone_for_python.so (default: {default_library})")
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or host: PyTorch on the CPU and Hone's host device")
    parser.add_argument("--ops", default=",".join(OPERATIONS), help="operations, with commas between (default: all)")
    parser.add_argument("--dtypes", default="f32,f16", help=f"of {','.join(DTYPES)} (default: f32,f16)")
    parser.add_argument("--sizes", default="2^10,2^16,2^20,2^24+1,2^28,2^30",
                        help="1000, 2^20 or 2^20+1, with commas between")
    add_setting_options(parser)
    parser.add_argument("--budget", type=int, default=100, help="tuning time a problem, in ms (default: 100)")
    parser.add_argument("--cache", default="", help="Hone's cache file (default: none)")
    parser.add_argument("--rounds", type=int, default=20, help="batches of each in a cell, at most (default: 20)")
    parser.add_argument("--cell-ms", type=float, default=30,
                        help="time a cell, in ms, after five batches (default: 30)")
    parser.add_argument("--time", type=float, default=200, help="begin no cell after so many seconds (default: 200)")
    parser.add_argument("--json", help="write every row to this file")
    options = parser.parse_args()
    refuse_unknown(parser, (options.ops, OPERATIONS), (options.dtypes, DTYPES), (options.contexts, ("stream", "graph")),
                   (options.company, ("itself", "others", "nobody")))
    return options


def measure(torch, hone, clock, options, rows):
    start, cells = time.perf_counter(), 0
    sizes, settings = parse_sizes(options.sizes), settings_of(options)
    l2_bytes = clock.flushed.numel() * 2
    for dtype in options.dtypes.split(","):
        element_bytes = torch.empty(0, dtype=getattr(torch, DTYPES[dtype])).element_size()
        elements = max(2 * max(sizes), 2 * l2_bytes // element_bytes)
        arena = make_input(torch, dtype, elements, clock.device)
        for operation in options.ops.split(","):
            for n, setting in itertools.product(sizes, settings):
                cells += 1
                if time.perf_counter() - start > options.time:
                    continue
                try:
                    rows.append(compare(torch, hone, clock, operation, dtype, n, setting, arena, options))
                except HoneError as error:
                    print(f"{operation} {dtype} n={n}: Hone: {error}", file=sys.stderr)
        del arena
    print_rows(rows)
    print_summary(rows, settings)
    print(f"\n{len(rows)} of {cells} cells in {time.perf_counter() - start:.0f} s, tuning included")


def main():
    options = parse_arguments()
    torch, hone, clock, name = open_all("reduce_vs_torch", options)
    run = run_of(torch, name, options, ["operation", "dtype", "n"])
    measure(torch, hone, clock, options, run["rows"])
    write_json(options.json, run)
    return 0 if all(row["peers"]["PyTorch"]["agrees"] for row in run["rows"] if "peers" in row) else 1


if __name__ == "__main__":
    sys.exit(main())
