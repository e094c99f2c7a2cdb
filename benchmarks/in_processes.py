#!/usr/bin/env python3
"""Runs a benchmark in several processes, each with fresh allocations, and says where Hone is behind its peers, level
with them, and ahead: the median of the processes with an interval. A tie is a cell whose interval spans 1. Cells paced
by the host, Hone's calls or the peer's, are marked and not in the means. Losses come first.

Usage: in_processes.py [OPTIONS] -- PROGRAM [ARGUMENTS]      runs PROGRAM ARGUMENTS --json FILE
       in_processes.py [OPTIONS] --from FILE [FILE ...]      takes what processes wrote before

{scratch} in ARGUMENTS is a folder that all processes share: with --cache {scratch}/winners the first one tunes, and the
others have its winners.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PACED = 0.9  # the host's share of a batch's time from which on the host paces it
CONFIDENCE = 0.9  # that an interval has at least, where there are processes enough
MOST_ROWS = 40  # of wins in the table, the narrowest first; the JSON has all
SENSORS = {"sm_clock_mhz": "clocks.sm", "memory_clock_mhz": "clocks.mem", "power_w": "power.draw",
           "temperature_c": "temperature.gpu"}
FACTS = {"name": "name", "driver": "driver_version", "power_limit_w": "power.limit",
         "most_sm_clock_mhz": "clocks.max.sm", "ecc": "ecc.mode.current"}


def confidence(samples, cut):
    """That the median lies between the order statistics that remain without `cut` on either side."""
    return 1 - 2 * sum(math.comb(samples, i) for i in range(cut + 1)) / 2**samples


def cut_of(samples):
    """How many of the least and of the largest samples an interval leaves out and still has CONFIDENCE; else none."""
    cut = 0
    while confidence(samples, cut + 1) >= CONFIDENCE:
        cut += 1
    return cut


def interval(samples):
    """Two order statistics that have the median between them; of five samples the extremes."""
    ordered, cut = sorted(samples), cut_of(len(samples))
    return ordered[cut], ordered[-1 - cut]


def verdict_of(low, high):
    return "loss" if high < 1 else "win" if low > 1 else "tie"


def cells_of(runs):
    """One for each peer of each row that every run has, losses first; and how many some run lacks. Among others, what a
    call adds to their time may be nothing or less, and has no ratio."""
    key = runs[0]["key"]
    by_key = [{tuple(row[name] for name in key): row for row in run["rows"]} for run in runs]
    cells, lacking = [], 0
    for at in dict.fromkeys(at for rows in by_key for at in rows):
        rows = [one[at] for one in by_key if at in one]
        if len(rows) < len(runs) or any(row.get("hone_us", 0) <= 0 for row in rows):
            lacking += 1
            continue
        for peer in dict.fromkeys(peer for row in rows for peer in row["peers"]):
            if all(row["peers"].get(peer, {"us": 0})["us"] > 0 for row in rows):
                cells.append({**dict(zip(key, at)), "peer": peer, **comparison(rows, peer)})
            else:
                lacking += 1
    order = {"loss": 0, "tie": 1, "win": 2}
    return sorted(cells, key=lambda cell: (order[cell["verdict"]], cell["ratio"])), lacking


def comparison(rows, peer):
    """Hone's row of each process next to a peer's. Ratios are those within a process, where both took turns."""
    theirs = [row["peers"][peer] for row in rows]
    ratios = [one["us"] / row["hone_us"] for row, one in zip(rows, theirs)]
    low, high = interval(ratios)
    shares = {"Hone": [row["host_share"] for row in rows], peer: [one["host_share"] for one in theirs]}
    found = {"verdict": verdict_of(low, high), "ratio": statistics.median(ratios), "low": low, "high": high,
             "paced_by_host": [name for name, of in shares.items() if statistics.median(of) >= PACED],
             "hone_us": statistics.median(row["hone_us"] for row in rows),
             "peer_us": statistics.median(one["us"] for one in theirs),
             "agrees": all(one.get("agrees", True) for one in theirs), "ratios": ratios,
             "variants": sorted({row["variant"] for row in rows if "variant" in row})}
    if all("ceiling_us" in row for row in rows):
        found["share_of_ceiling"] = statistics.median(row["ceiling_us"] / row["hone_us"] for row in rows)
        found["ceiling_by"] = sorted({row.get("ceiling_by", "plain") for row in rows})
    return found


def absent_of(runs):
    """{peer: why} of those that took no part in all processes, or in some cells."""
    absent = dict(runs[0].get("missing_peers", {}))
    failed = {}
    for row in (row for run in runs for row in run["rows"]):
        for peer, why in row.get("failed_peers", {}).items():
            failed.setdefault(peer, []).append(why)
    return {**absent,
            **{peer: f"failed {len(of)} times: {'; '.join(dict.fromkeys(of))}" for peer, of in failed.items()}}


def summary_of(cells):
    """The means by peer and setting, over the cells that the host does not pace."""
    groups = {}
    for cell in cells:
        groups.setdefault((cell["peer"], cell["context"], cell["company"]), []).append(cell)
    summary = []
    for (peer, context, company), group in sorted(groups.items()):
        counted = [cell for cell in group if not cell["paced_by_host"]]
        counts = {name: sum(cell["verdict"] == name for cell in counted) for name in ("loss", "tie", "win")}
        mean = math.exp(statistics.mean(math.log(cell["ratio"]) for cell in counted)) if counted else None
        summary.append({"peer": peer, "context": context, "company": company, "geometric_mean": mean, **counts,
                        "paced_by_host": len(group) - len(counted)})
    return summary


def setting_of(cell):
    return cell["context"] + {"itself": "", "others": " + others", "nobody": " alone"}[cell["company"]]


def cell_text(cell, key):
    said = [str(cell[name]) if isinstance(cell[name], str) else f"{name}={cell[name]}"
            for name in key if name not in ("context", "company")]
    paced = f"  * {' and '.join(cell['paced_by_host'])}" if cell["paced_by_host"] else ""
    share = f"{100 * cell['share_of_ceiling']:6.1f} %" if "share_of_ceiling" in cell else f"{'-':>8}"
    return (f"  {cell['ratio']:6.3f} {cell['low']:6.3f} to {cell['high']:6.3f} {cell['hone_us']:10.2f}"
            f" {cell['peer_us']:10.2f} {share}  {cell['peer']}: {' '.join(said)}, {setting_of(cell)}{paced}"
            f"{'' if cell['agrees'] else '  DIFFERENT RESULTS'}")


def table(found):
    """Text: how it was measured, the means, then losses, ties, and the narrowest wins."""
    gpu, host, runs = found["gpu"], found["host"], found["processes"]
    sensors = ", ".join(f"{name} {low:.0f} to {high:.0f}" for name, (low, _, high) in found["sensors"].items())
    lines = [f"{found['command']}",
             f"{runs} processes, {found['device']}, driver {gpu.get('driver', found['driver'])}, "
             f"CUDA {found['cuda'] or 'none'}, {host['cpu']} ({host['cores']} cores), commit {found['commit']}, "
             f"budget {found['budget_ms']} ms, {found['date']}",
             *([sensors] if sensors else []),
             f"[low, high]: {100 * found['confidence']:.0f} % confidence; *: paced by the host, not in the means", "",
             f"{'peer ÷ Hone':<14}{'in':<16}{'mean':>7}{'losses':>8}{'ties':>6}{'wins':>6}{'paced':>7}"]
    for one in found["summary"]:
        mean = "-" if one["geometric_mean"] is None else f"{one['geometric_mean']:.3f}"
        lines.append(f"{one['peer']:<14}{setting_of(one):<16}{mean:>7}{one['loss']:>8}{one['tie']:>6}{one['win']:>6}"
                     f"{one['paced_by_host']:>7}")
    for verdict, title in (("loss", "Losses"), ("tie", "Ties"), ("win", "Wins")):
        chosen = [cell for cell in found["cells"] if cell["verdict"] == verdict]
        shown = chosen[:MOST_ROWS] if verdict == "win" else chosen
        more = f", the narrowest {len(shown)}" if len(shown) < len(chosen) else ""
        lines += ["", f"{title}: {len(chosen)}{more}"]
        if shown:
            lines.append(f"  {'ratio':>6} {'low':>6}    {'high':>6} {'Hone us':>10} {'peer us':>10} {'ceiling':>8}")
        lines += [cell_text(cell, found["key"]) for cell in shown]
    if found["lacking"]:
        lines += ["", f"{found['lacking']} cells are left out: a process did not measure them, or no time above 0."]
    lines += [f"{peer} is absent: {why}" for peer, why in found["absent"].items()]
    return "\n".join(lines) + "\n"


def nvidia_smi(fields):
    """{name: value} of the first GPU; empty without one."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return dict(zip(fields, (value.strip() for value in said.splitlines()[0].split(","))))


class Sensors:
    """Clocks, power and temperature of the first GPU while programs run."""

    def __enter__(self):
        self.file = tempfile.TemporaryFile("w+")
        command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(SENSORS.values())}",
                   "--format=csv,noheader,nounits", "-lms", "250"]
        try:
            self.process = subprocess.Popen(command, stdout=self.file, stderr=subprocess.DEVNULL)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()

    def seen(self):
        """{name: (least, median, most)}"""
        self.file.seek(0)
        samples = {name: [] for name in SENSORS}
        for line in self.file.read().splitlines():
            for name, value in zip(SENSORS, line.split(",")):
                try:
                    samples[name].append(float(value))
                except ValueError:  # a line that is half written, or a sensor that is not there
                    pass
        return {name: (min(of), statistics.median(of), max(of)) for name, of in samples.items() if of}


def host_facts():
    model = "unknown"
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"cpu": model, "cores": os.cpu_count()}


def commit_of_this():
    command = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def shown(arguments):
    """A command as results show it: files without their folders."""
    return " ".join(os.path.basename(word) if os.path.isabs(word) else word for word in arguments)


def run_once(command, scratch, number):
    """What the program wrote, or an exit. 1 says that results differ, which the rows tell, too."""
    path = os.path.join(scratch, f"process-{number}.json")
    said = [word.replace("{scratch}", scratch) for word in command] + ["--json", path]
    try:
        done = subprocess.run(said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        sys.exit(f"in_processes: {command[0]} cannot be started: {error.strerror}")
    if done.returncode not in (0, 1) or not os.path.exists(path):
        sys.exit(f"in_processes: {' '.join(said)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return json.loads(pathlib.Path(path).read_text())


def findings(runs, command, commit, sensors):
    cells, lacking = cells_of(runs)
    said = {name: value for name, value in runs[0].items() if name not in ("rows", "key")}
    return {**{name: said.pop(name, "") for name in ("device", "driver", "cuda", "date", "budget_ms")},
            "commit": commit, "command": command, "processes": len(runs),
            "confidence": confidence(len(runs), cut_of(len(runs))), "host": host_facts(), "gpu": nvidia_smi(FACTS),
            "sensors": sensors, "program": said, "key": runs[0]["key"],
            "summary": summary_of(cells), "lacking": lacking, "absent": absent_of(runs), "cells": cells}


def write(options, found):
    """Both files, after each process, so that a run that is ended early leaves what it has."""
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    if options.table:
        pathlib.Path(options.table).write_text(table(found))


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=5, help="(default: 5)")
    parser.add_argument("--seconds", type=float, default=math.inf,
                        help="begin no process after so long (default: none)")
    parser.add_argument("--commit", default=commit_of_this(), help="of the programs (default: what git says of this)")
    parser.add_argument("--json", help="write the cells to this file")
    parser.add_argument("--table", help="write the table to this file, too")
    parser.add_argument("--from", dest="files", nargs="+", help="JSON files of processes, instead of running them")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.command = arguments[at + 1:]
    if bool(options.files) == bool(options.command):
        parser.error("say -- PROGRAM ARGUMENTS, or --from FILES")
    if options.processes < 1:
        parser.error("there must be a process")
    return options


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    options, start = parse_arguments(arguments), time.monotonic()
    command = shown(["in_processes.py", *arguments])
    if options.files:
        runs = [json.loads(pathlib.Path(file).read_text()) for file in options.files]
        found = findings(runs, command, options.commit, {})
        write(options, found)
    runs = []
    with tempfile.TemporaryDirectory() as scratch, Sensors() as sensors:
        while options.command and len(runs) < options.processes:
            if runs and time.monotonic() - start > options.seconds:
                print(f"in_processes: {options.seconds:.0f} s are over after {len(runs)} processes", file=sys.stderr)
                break
            runs.append(run_once(options.command, scratch, len(runs)))
            found = findings(runs, command, options.commit, sensors.seen())
            write(options, found)
    print(table(found), end="")
    return 0 if all(cell["agrees"] for cell in found["cells"]) else 1


if __name__ == "__main__":
    sys.exit(main())
