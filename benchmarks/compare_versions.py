#!/usr/bin/env python3
"""Two builds of the hone command tune the same problems, in turn, each round with empty caches: what a change is worth.

Usage: compare_versions.py --old HONE --new HONE [--rounds N] [--device D] [--budget B] [--json PATH] PROBLEM...

A PROBLEM is the arguments of `hone tune` in one word: "reduce --op sum --dtype f32 --size 2^20,2^24". Both builds are
given --regret 0, so that each size gets its own winner. A row of the table is one size: the median of the rounds of
the winner's time with either build, their ratio (above 1: the new build is faster), and the least and the largest ratio
of a round.
"""
import argparse
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile


def tune(hone, problem, device, budget):
    """{(family, operation, dtype, extents): the winner's median in µs}, of a tuning with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        cache = os.path.join(folder, "cache.sqlite")
        environment = dict(os.environ, HONE_CACHE=cache, HONE_CACHE_PATH="")
        command = [hone, "tune", *shlex.split(problem), "--device", device, "--budget", budget, "--regret", "0"]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        shown = subprocess.run([hone, "inspect", "--json"], check=True, env=environment, capture_output=True, text=True)
    found = {}
    for winner in json.loads(shown.stdout)["winners"]:
        if not winner["tuned"] or not winner["median_us"]:
            continue
        key = winner["problem"]
        extents = "x".join(str(extent) for extent in winner["tuned_extents"] if extent != 1) or "1"
        found[key["family"], key["operation"], key["dtype"], extents, key["launch_context"]] = winner["median_us"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--budget", default="1500ms")
    parser.add_argument("--json")
    parser.add_argument("problems", nargs="+", metavar="PROBLEM")
    arguments = parser.parse_args()

    rows = []
    print(f"{'problem':44} {'old us':>9} {'new us':>9} {'old/new':>8}  of the rounds", flush=True)
    for problem in arguments.problems:
        rounds = [(tune(arguments.old, problem, arguments.device, arguments.budget),
                   tune(arguments.new, problem, arguments.device, arguments.budget)) for _ in range(arguments.rounds)]
        common = [key for key in rounds[0][0] if all(key in old and key in new for old, new in rounds)]
        if not common:
            print(f"{problem}: no size was tuned by both", file=sys.stderr)
        for key in common:
            old = statistics.median(before[key] for before, _ in rounds)
            new = statistics.median(after[key] for _, after in rounds)
            ratios = [before[key] / after[key] for before, after in rounds]
            print(f"{' '.join(key):44} {old:9.3f} {new:9.3f} {old / new:8.3f}  {min(ratios):.3f} to {max(ratios):.3f}",
                  flush=True)
            rows.append({"family": key[0], "operation": key[1], "dtype": key[2], "extents": key[3], "context": key[4],
                         "old_us": old, "new_us": new, "ratios": ratios})
    if rows:
        ratios = [row["old_us"] / row["new_us"] for row in rows]
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"{len(rows)} sizes: geometric mean {mean:.3f}, worst {min(ratios):.3f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
            out.write("\n")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
