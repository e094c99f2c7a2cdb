#!/usr/bin/env python3
"""What each parameter is worth: of every tuning in a cache, the best time with each value of each parameter, as a
percentage of the fastest candidate. Made for tunings with `hone tune --exhaustive`, which prune nothing, so that the
tables of what is pruned rest on figures.

Usage: parameter_effects.py CACHE [--json PATH]
"""
import argparse
import json
import sqlite3
import zlib
from collections import defaultdict

QUERY = """SELECT t.winner_id, w.operation, w.dtype, w.extent0, w.extent1, w.extent2, w.launch_context, t.device,
                  t.family, t.policy, t.median_us, t.is_default
           FROM trials t JOIN winner w ON w.id = t.winner_id WHERE t.verdict = 'ok' AND t.median_us > 0"""


def uncompressed(data, size):
    """What the function sqlar_uncompress() of the sqlite3 shell returns; the view `trials` calls it."""
    return data if size in (0, len(data)) else zlib.decompress(data)


def read(path):
    """{problem: [(policy as a dict, median in µs, is the model's choice)]}"""
    problems = defaultdict(list)
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as cache:
        cache.create_function("sqlar_uncompress", 2, uncompressed)
        for (_, operation, dtype, *extents, context, device, family, text, median, is_default) in cache.execute(QUERY):
            shape = "x".join(str(extent) for extent in extents if extent != 1) or "1"
            policy = dict(field.split("=") for field in text.split())
            problems[(device, family, operation, dtype, shape, context)].append((policy, median, bool(is_default)))
    return problems


def effects(candidates):
    """{parameter: {value: best time with it ÷ best time}}"""
    best = min(median for _, median, _ in candidates)
    found = defaultdict(dict)
    for policy, median, _ in candidates:
        for name, value in policy.items():
            found[name][value] = min(found[name].get(value, float("inf")), median / best)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    for problem, candidates in sorted(read(arguments.cache).items()):
        device, family, operation, dtype, shape, context = problem
        default = min((median for _, median, is_default in candidates if is_default), default=float("nan"))
        best = min(median for _, median, _ in candidates)
        print(f"{family} {operation} {dtype} {shape} {context}: {best:.2f} us, {len(candidates)} measured, "
              f"the model's choice {100 * default / best:.1f} %")
        found = effects(candidates)
        for name, values in found.items():
            if len(values) > 1:
                by_ratio = sorted(values.items(), key=lambda v: v[1])
                text = "  ".join(f"{value} {100 * ratio:.1f}" for value, ratio in by_ratio)
                print(f"    {name:16} {text}")
        rows.append({"device": device, "family": family, "operation": operation, "dtype": dtype, "shape": shape,
                     "context": context, "best_us": best, "model_us": default, "measured": len(candidates),
                     "effects": found})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
