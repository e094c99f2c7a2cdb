#!/usr/bin/env python3
"""How far the search falls behind an exhaustive one in the spaces of examples/kernels/, and how much it measures: each
kernel is tuned by an exhaustive search and by an ordinary one, and the time that the exhaustive one found for the
ordinary one's winner is compared with the fastest.

Usage: own_kernels.py HONE [--device cuda:0] [--cache FOLDER] [--kernel NAME=SIZE,SIZE]...
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "examples" / "kernels"
SIZES = {"axpy": "2^16,2^20,2^24,2^27", "stencil": "2^10x2^10,2^12x2^12,2^14x2^13",
         "convolution": "2^10x2^10,2^12x2^12"}


def hone(command, *arguments):
    return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout


def winner(command, kernel, size, cache, device):
    kind = device.split(":")[0]
    text = hone(command, "explain", "--family", kernel, "--size", size, "--cache", cache, "--device", kind, "--json")
    return json.loads(text)["winners"][0]


def tuned(command, kernel, size, cache, device, *options):
    """The winner of a tuning of its own, so that no other size has a say in it."""
    hone(command, "tune", kernel, "--size", size, "--cache", cache, "--device", device, "--quiet", *options)
    return winner(command, kernel, size, cache, device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hone")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--cache", help="a folder that keeps the caches")
    parser.add_argument("--kernel", action="append", metavar="NAME=SIZES")
    options = parser.parse_args()
    sizes = dict(text.split("=") for text in options.kernel) if options.kernel else SIZES
    folder = pathlib.Path(options.cache or tempfile.mkdtemp())
    print(f"{'kernel':12} {'size':>12} {'fastest µs':>11} {'chosen µs':>10} {'regret':>7} {'measured':>16}")
    regrets, shares = [], []
    for name, texts in sizes.items():
        kernel = str(KERNELS / f"{name}.toml")
        for size in texts.split(","):
            judge = tuned(options.hone, kernel, size, str(folder / f"{name}_{size}_all.sqlite"), options.device,
                          "--exhaustive", "--budget", "120s")
            found = tuned(options.hone, kernel, size, str(folder / f"{name}_{size}.sqlite"), options.device)
            times = {(c["policy"], c["max_blocks"]): c["median_us"] for c in judge["candidates"] if c["median_us"] > 0}
            chosen = found["candidate"]
            fastest, mine = min(times.values()), times[(chosen["policy"], chosen["max_blocks"])]
            share = found["measured"] / len(times)
            regrets.append(mine / fastest - 1)
            shares.append(share)
            print(f"{name:12} {size:>12} {fastest:11.2f} {mine:10.2f} {regrets[-1]:7.1%} "
                  f"{found['measured']:5} of {len(times):4} {share:5.0%}", flush=True)
    print(f"regret: worst {max(regrets):.1%}, mean {sum(regrets) / len(regrets):.1%}; "
          f"measured: {sum(shares) / len(shares):.0%}")


if __name__ == "__main__":
    main()
