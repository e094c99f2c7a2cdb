#!/usr/bin/env python3
"""Writes the tables of docs/ladder.md from what `ladder --json` printed.

    ladder --json sum.json; ladder --what softmax --json softmax.json; …
    benchmarks/ladder_table.py docs/ladder.md sum.json transpose.json softmax.json access.json

Each file replaces what is between the lines `<!-- ladder: WHAT -->` and `<!-- end -->` of the page, where WHAT is the
file's own ("sum", "transpose", "softmax" or "access"). Prints the tables where no page is given (-).
"""

import argparse
import json
import re
import sys


def table(result):
    """The Markdown table of one ladder: a row for each step, columns for each size."""
    rows = result["rows"]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    steps = list(dict.fromkeys(row["step"] for row in rows))
    errors = {error["step"]: error["error"] for error in result.get("errors", [])}
    cells = {(row["step"], row["size"]): row for row in rows}

    heads = ["step", "lines"] + [f"{size}: µs | GB/s | %" for size in sizes]
    if errors:
        heads.append(f"error of {result['error_elements']:.0e} × 1.23f".replace("e+0", "e"))
    columns = " | ".join(heads).count("|") + 1
    lines = [f"{result['device']}, in a {result['context']}, {result['date']}:", "", "| " + " | ".join(heads) + " |",
             "| --- |" + " ---: |" * (columns - 1)]
    for step in steps:
        first = cells[step, sizes[0]]
        parts = [f"`{step}`" if step not in ("Hone", "copy") else step, str(first["lines"] or "–")]
        for size in sizes:
            cell = cells[step, size]
            parts += [f"{cell['us']:.4g}", f"{cell['gbps']:.{1 if cell['gbps'] < 100 else 0}f}",
                      f"{cell['percent_of_ceiling']:.0f}"]
        if errors:
            parts.append(f"{errors[step]:.1e}" if step in errors else "–")
        lines.append("| " + " | ".join(parts) + " |")
    return "\n".join(lines)


def put(page, what, text):
    """The page with the text between the marks of one ladder."""
    mark = re.compile(rf"(<!-- ladder: {what} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not mark.search(page):
        sys.exit(f"the page has no line '<!-- ladder: {what} -->'")
    return mark.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", help="docs/ladder.md, or - to print the tables")
    parser.add_argument("results", nargs="+", help="files of ladder --json")
    arguments = parser.parse_args()
    results = []
    for path in arguments.results:
        with open(path, encoding="utf-8") as file:
            results.append(json.load(file))
    if arguments.page == "-":
        print("\n\n".join(table(result) for result in results))
        return
    with open(arguments.page, encoding="utf-8") as file:
        page = file.read()
    for result in results:
        page = put(page, result["what"], table(result))
    with open(arguments.page, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
