#!/usr/bin/env python3
"""What Nsight Compute sees of the kernels that Hone chose. Problems are tuned in this process and then called once each
in a second one under ncu, with cold caches and clocks left as they are. See benchmarks/README.md."""
import argparse
import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

from beside_torch import DTYPES, HoneError, Missing, make_input, open_all, parse_sizes, today

ELAPSED = "avg.pct_of_peak_sustained_elapsed"
COLUMNS = [namedtuple("Column", "title metric scale digits")(*column) for column in (
    ("us", "gpu__time_duration.sum", 1e-3, 1),
    ("MB read", "dram__bytes_read.sum", 1e-6, 1),
    ("MB writ.", "dram__bytes_write.sum", 1e-6, 1),
    ("DRAM %", f"dram__throughput.{ELAPSED}", 1, 1),
    ("L2 hit %", "lts__t_sector_hit_rate.pct", 1, 1),
    ("issue %", f"sm__issue_active.{ELAPSED}", 1, 1),
    ("warps %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1, 1),
    ("LSU %", f"sm__inst_executed_pipe_lsu.{ELAPSED}", 1, 1),
    ("FMA %", f"sm__inst_executed_pipe_fma.{ELAPSED}", 1, 1),
    # sm_90 has no fp16 pipe: arithmetic on halves is a part of what the FMA pipe does.
    ("FP16 %", f"sm__inst_executed_pipe_fma_type_fp16.{ELAPSED}", 1, 1),
    ("ALU %", f"sm__inst_executed_pipe_alu.{ELAPSED}", 1, 1),
    ("XU %", f"sm__inst_executed_pipe_xu.{ELAPSED}", 1, 1),
    ("conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 1, 0),
    ("regs", "launch__registers_per_thread", 1, 0))]
STALLS = {f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio": reason for reason in (
    "barrier branch_resolving dispatch_stall drain imc_miss lg_throttle long_scoreboard math_pipe_throttle membar "
    "mio_throttle no_instruction not_selected short_scoreboard sleeping tex_throttle wait").split()}
METRICS = [column.metric for column in COLUMNS] + list(STALLS)
TO_BASE_UNIT = {"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
NCU_OPTIONS = ("--profile-from-start off --clock-control none --cache-control all --target-processes all --nvtx "
               "--print-units base --print-kernel-base demangled --csv --page raw --metrics").split()
DEFAULT_PROBLEMS = ("read::f16:2^28,reduce:logsumexp:f16:2^28,reduce_rows:logsumexp:f16:2^20x64,"
                    "reduce_columns:sum:f16:4x2^24,softmax:softmax:f16:2^10x2^16,softmax:softmax:f16:2^6x2^20")
Problem = namedtuple("Problem", "text kind operation dtype shape")


class NcuError(Exception):
    """ncu, or the process under it, did not do what it was started for."""


def parse_problem(text):
    """"softmax:softmax:f16:64x2^20"; a lone size is one row."""
    try:
        kind, operation, dtype, shape = text.split(":")
        sides = [parse_sizes(side)[0] for side in shape.split("x")]
        rows, columns = sides if len(sides) > 1 else (1, sides[0])
        if dtype not in DTYPES or rows < 1 or columns < 1:
            raise ValueError
    except ValueError:
        raise ValueError(f"'{text}' is no problem; write KIND:OPERATION:DTYPE:SHAPE, like softmax:softmax:f16:64x2^20 "
                         f"or transpose::f32:12289x4097, with one of the dtypes {', '.join(DTYPES)}") from None
    return Problem(text, kind, operation, dtype, (rows, columns))


def prepare(hone, problem, context):
    """Its number and the winner's parameters, tuned unless the cache has them; a plain read has neither."""
    if problem.kind == "read":
        return None, ""
    number = hone.prepare(problem.operation, problem.dtype, problem.shape, 16, context == "graph", problem.kind)
    return number, hone.variant(number)


def call_all(options):
    """In the process under ncu: calls each problem once while ncu looks, in an NVTX range with its place among them."""
    torch, hone, clock, _ = open_all("profile_winners", options)
    stream = torch.cuda.current_stream().cuda_stream
    for place, problem in enumerate(options.problems):
        number, variant = prepare(hone, problem, options.context)
        print(f"\nproblem {place}: {variant}", flush=True)
        x = make_input(torch, problem.dtype, math.prod(problem.shape), clock.device)
        if number is None:
            size_bytes = x.numel() * x.element_size() // 16 * 16
            clock.synchronize()  # Hone reads in another stream
            _, (call,) = hone.plain([x.data_ptr()], 0, size_bytes, stream)
        else:
            copied = {"dot": x, "weighted": x[:problem.shape[1]]}
            second = copied[problem.operation].clone() if problem.operation in copied else x
            out = torch.empty(hone.result(number)[1], dtype=torch.int64, device=x.device)  # room for any dtype
            call = hone.call(number, x.data_ptr(), second.data_ptr(), out.data_ptr(), stream)
        call()
        clock.synchronize()
        with torch.cuda.nvtx.range(f"hone_problem_{place}"), torch.cuda.profiler.profile():
            call()
            clock.synchronize()


def number_in(text, unit):
    """Times in ns, memory in bytes; None of "n/a" and the like."""
    try:
        value = float(text.replace(",", "")) * TO_BASE_UNIT.get(unit, 1)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def short_name(demangled):
    """Reduce::last_block of "void hone::kernel<&hone::Reduce<...>::last_block, 256, 1>(...)"; else the name itself."""
    body = re.search(r"\bkernel<&(.*)", demangled)
    if not body:
        return demangled
    depth, name = 0, ""
    for character in re.sub(r"^\((?:void )?", "", body[1]):
        depth += (character == "<") - (character == ">")
        if depth < 0 or depth == 0 and character in ",()":
            break
        if depth == 0 and character != ">":
            name += character
    return name.replace("hone::", "")


def parse_raw_page(text):
    """The kernels in what ncu --csv --page raw printed, whatever else was printed around it: the place in each one's
    NVTX range (None without a range), its name, and its METRICS."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), len(lines))
    table = list(csv.reader(line for line in lines[first:] if line.startswith('"')))  # names, units, and a row a kernel
    kernels = []
    for row in table[2:]:
        cells, units = dict(zip(table[0], row)), dict(zip(table[0], table[1]))
        place = re.search(r"hone_problem_(\d+)", " ".join(row))
        kernels.append((int(place[1]) if place else None, short_name(cells["Kernel Name"]),
                        {name: number_in(cells.get(name, ""), units.get(name)) for name in METRICS}))
    return kernels


def profile(ncu, command):
    """The kernels that `command` calls, and what was printed. Metrics that ncu does not know are left out."""
    metrics = METRICS
    while True:
        done = subprocess.run([ncu, *NCU_OPTIONS, ",".join(metrics), *command], env={**os.environ, "LC_ALL": "C"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
        if "ERR_NVGPUCTRPERM" in done.stdout:
            raise Missing("the permission to read the GPU's counters is missing (ERR_NVGPUCTRPERM): run as root, in a "
                          "container with CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0")
        kernels = parse_raw_page(done.stdout)
        said = [line for line in done.stdout.splitlines() if line and not line.startswith(('"', "==PROF=="))]
        complaint = "\n".join([f"{ncu} ended with {done.returncode} after {len(kernels)} kernels:"] + said[-12:])
        if kernels:
            if done.returncode:
                print(f"profile_winners: {complaint}", file=sys.stderr)
            return kernels, done.stdout
        unknown = re.findall(r"Failed to find metric (?:regex:\^?)?(\w+)", done.stdout)
        known = [metric for metric in metrics if metric.split(".")[0] not in unknown]
        if not known or known == metrics:
            raise NcuError(complaint)
        print(f"profile_winners: ncu knows no {', '.join(unknown)}", file=sys.stderr)
        metrics = known


def rows_of(problems, variants, kernels, printed):
    """One row a kernel, by problem; refuses kernels of another winner than the one that was tuned outside of ncu."""
    called, rows = dict(re.findall(r"^problem (\d+): (.*)$", printed, re.MULTILINE)), []
    for place, (problem, variant) in enumerate(zip(problems, variants)):
        if called.get(str(place)) != variant:
            raise NcuError(f"{problem.text}: '{variant}' was tuned, but '{called.get(str(place), 'nothing')}' called "
                           "under ncu, where the winner should have come from the cache file")
        found = [{"problem": problem.text, "variant": variant, "kernel": name, "metrics": metrics}
                 for at, name, metrics in kernels if at == place]
        if not found:
            raise NcuError(f"{problem.text}: ncu saw no kernel in the NVTX range hone_problem_{place}")
        rows += found
    return rows


def table_text(rows):
    text = f"{'kernel':<26}" + "".join(f"{column.title:>10}" for column in COLUMNS) + "  warps stalled, per issue\n"
    last = None
    for row in rows:
        if row["problem"] != last:
            text += f"{row['problem']}  {row['variant']}".rstrip() + "\n"
        last, metrics, line = row["problem"], row["metrics"], f"  {row['kernel']:<24}"
        for column in COLUMNS:
            value = metrics[column.metric]
            line += f"{'-':>10}" if value is None else f"{value * column.scale:>10.{column.digits}f}"
        stalls = sorted(((metrics[name], reason) for name, reason in STALLS.items() if metrics[name]), reverse=True)
        text += f"{line}  " + (", ".join(f"{reason} {warps:.1f}" for warps, reason in stalls[:3]) or "-") + "\n"
    return text


def parse_arguments(arguments=None):
    default_library = os.environ.get("HONE_FOR_PYTHON", "build/gpu/benchmarks/libhone_for_python.so")
    default_ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=default_library,
                        help=f"libhone_for_python.so (default: {default_library})")
    parser.add_argument("--device", default="cuda:0", choices=("cuda:0",), help="the first GPU that CUDA shows")
    parser.add_argument("--problems", default=DEFAULT_PROBLEMS,
                        help="KIND:OPERATION:DTYPE:SHAPE, with commas between; 'read' is the plain read of the "
                        f"ceilings, while the device's own copy is no kernel (default: {DEFAULT_PROBLEMS})")
    parser.add_argument("--budget", type=int, default=400, help="tuning time a problem, in ms (default: 400)")
    parser.add_argument("--cache", default="", help="Hone's cache file (default: a temporary one)")
    parser.add_argument("--context", default="stream", choices=("stream", "graph"),
                        help="whose winners; they are profiled in a stream all the same (default: stream)")
    parser.add_argument("--ncu", default=default_ncu, help=f"Nsight Compute's program (default: {default_ncu})")
    parser.add_argument("--json", help="write every row to this file")
    parser.add_argument("--table", help="write the table to this file")
    parser.add_argument("--call-all", action="store_true", help=argparse.SUPPRESS)  # in the process under ncu
    options = parser.parse_args(arguments)
    options.given = options.problems
    try:
        options.problems = [parse_problem(text) for text in options.given.split(",")]
    except ValueError as error:
        parser.error(str(error))
    return options


def tune_and_profile(options):
    if not shutil.which(options.ncu):
        raise Missing(f"Nsight Compute is missing: there is no program {options.ncu}; name it with --ncu")
    torch, hone, _, device = open_all("profile_winners", options)
    variants = [prepare(hone, problem, options.context)[1] for problem in options.problems]
    rows = rows_of(options.problems, variants, *profile(options.ncu, [
        sys.executable, os.path.abspath(__file__), "--call-all", "--library", options.library, "--cache", options.cache,
        "--problems", options.given, "--budget", str(options.budget), "--context", options.context]))
    print(table_text(rows), end="")
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(f"{device}, PyTorch {torch.__version__}, {today()}: one call each of the winners for a "
                       f"{options.context},\nby Nsight Compute, cold caches, clocks as they are\n\n{table_text(rows)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": device, "torch": torch.__version__, "date": today(), "context": options.context,
                       "budget_ms": options.budget, "rows": rows}, file, indent=1)


def main():
    options = parse_arguments()
    try:
        if options.call_all:
            call_all(options)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            options.cache = options.cache or os.path.join(folder, "winners")
            tune_and_profile(options)
    except (Missing, HoneError, NcuError) as error:
        print(f"profile_winners: {error}", file=sys.stderr)
        return 3 if isinstance(error, Missing) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
