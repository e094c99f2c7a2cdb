"""in_processes.py on figures that are made up, and on a program that stands in for a benchmark: FOLDER."""
import contextlib
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import in_processes as program  # noqa: E402

# Of five medians the extremes have the true one between them with 1 − 2 · 2^−5; more processes allow less than those.
assert program.confidence(5, 0) == 0.9375
assert program.interval([5, 1, 4, 2, 3]) == (1, 5)
assert program.interval(range(10)) == (1, 8)
assert program.confidence(10, 2) < program.CONFIDENCE <= program.confidence(10, 1)
assert program.interval([7]) == (7, 7)


def row(name, hone, cub, host_share=0.0, **more):
    return {"operation": name, "n": 7, "context": "stream", "company": "itself", "variant": "unroll=2", "hone_us": hone,
            "host_share": host_share, "peers": {"CUB": {"us": cub, "host_share": 0.0, "agrees": True}}, **more}


def run(*rows):
    return {"device": "a GPU", "driver": "13.0", "cuda": "13.0", "date": "2026-11-25", "budget_ms": 60,
            "peers": ["CUB 3.0.1"], "key": ["operation", "n", "context", "company"], "rows": list(rows)}


# Processes differ; in each, Hone takes 10 µs but for 'drifts', where both are slower in some processes.
RUNS = [run(row("behind", 10, 9 + 0.1 * i), row("level", 10, 9.9 + 0.1 * i), row("ahead", 10, 20 + i, ceiling_us=9.5),
            row("drifts", 10 * (1 + i), 11 * (1 + i)), row("paced", 10, 40, host_share=0.97),
            row("hidden", 10, 1 - i), *([row("rare", 1, 1)] if i == 2 else [])) for i in range(5)]
found = program.findings(RUNS, "the command", "abc", {"power_w": (100, 300, 500)})
assert [(cell["operation"], cell["verdict"]) for cell in found["cells"]] == [
    ("behind", "loss"), ("level", "tie"), ("drifts", "win"), ("ahead", "win"), ("paced", "win")], found["cells"]
behind, level, drifts, ahead, paced = found["cells"]
assert [round(behind[name], 9) for name in ("low", "ratio", "high")] == [0.9, 0.92, 0.94]
assert level["low"] < 1 < level["high"] and abs(drifts["high"] - drifts["low"]) < 1e-9
assert ahead["share_of_ceiling"] == 0.95 and "share_of_ceiling" not in behind
assert paced["paced_by_host"] == ["Hone"] and not ahead["paced_by_host"]
assert found["lacking"] == 2 and found["confidence"] == 0.9375 and found["program"] == {"peers": ["CUB 3.0.1"]}
(summary,) = found["summary"]
assert (summary["loss"], summary["tie"], summary["win"], summary["paced_by_host"]) == (1, 1, 2, 1)
assert abs(summary["geometric_mean"] - (0.92 * 1.01 * 1.1 * 2.2)**0.25) < 1e-9, "what the host paces is not in the mean"

text = program.table(found)
assert text.index("behind n=7") < text.index("level n=7") < text.index("drifts n=7") < text.index("ahead n=7")
assert "Losses: 1" in text and "Ties: 1" in text and "Wins: 3" in text and "power_w 100 to 500" in text
assert [line for line in text.splitlines() if "paced n=7" in line][0].endswith("* Hone")
assert "2 cells are left out" in text

# A peer that is not there, and one that fails in some cells or processes, are named, and the others are compared.
absent = [run(row("softmax", 10, 12, failed_peers={"QuACK": "rows are too long"}), row("row_sum", 10, 12))
          for _ in range(2)]
for one in absent:
    one["missing_peers"] = {"Liger": "ModuleNotFoundError: No module named 'liger_kernel'"}
absent[1]["rows"][1]["peers"]["QuACK"] = {"us": 11, "host_share": 0.0, "agrees": True}
fewer = program.findings(absent, "", "", {})
assert [cell["peer"] for cell in fewer["cells"]] == ["CUB", "CUB"] and fewer["lacking"] == 1
assert fewer["absent"] == {"Liger": "ModuleNotFoundError: No module named 'liger_kernel'",
                           "QuACK": "failed 2 times: rows are too long"}
assert "Liger is absent: ModuleNotFoundError" in program.table(fewer)

# A program that writes its process's row, and what it was called with.
STAND_IN = """
import json, os, sys
shared, where = sys.argv[1], sys.argv[sys.argv.index("--json") + 1]
calls = int(open(shared).read()) if os.path.exists(shared) else 0
open(shared, "w").write(str(calls + 1))
run = json.loads(sys.argv[2])[calls]
json.dump(run, open(where, "w"))
sys.exit(0 if all(row["peers"]["CUB"]["agrees"] for row in run["rows"]) else int(sys.argv[3]))
"""


def main(*arguments):
    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        try:
            status = program.main(list(arguments))
        except SystemExit as error:
            status = error.code
    return status, out.getvalue(), complaints.getvalue()


with tempfile.TemporaryDirectory() as folder:
    script, result, shown = (os.path.join(folder, name) for name in ("stand_in.py", "found.json", "found.txt"))
    with open(script, "w", encoding="utf-8") as file:
        file.write(STAND_IN)
    call = ["--commit", "abc", "--json", result, "--table", shown, "--", sys.executable, script, "{scratch}/calls"]
    status, out, _ = main(*call, json.dumps(RUNS), "1")
    written = json.loads(open(result, encoding="utf-8").read())
    assert status == 0 and written["processes"] == 5 and written["cells"] == found["cells"], out
    assert written["commit"] == "abc" and "{scratch}/calls" in written["command"] and written["host"]["cores"] > 0
    assert "--json found.json --table found.txt -- " in written["command"] and folder not in written["command"]
    assert out == open(shown, encoding="utf-8").read()

    # A run that ends early leaves what it has.
    status, out, complaints = main("--seconds", "0", *call, json.dumps(RUNS), "1")
    assert status == 0 and "0 s are over after 1 processes" in complaints and out.count("0 % confidence") == 1, out

    # Results that differ are told and end it with 1; a program that fails ends it at once.
    wrong = json.loads(json.dumps(RUNS))
    wrong[3]["rows"][0]["peers"]["CUB"]["agrees"] = False
    status, out, _ = main(*call, json.dumps(wrong), "1")
    assert status == 1 and out.count("DIFFERENT RESULTS") == 1, out
    status, out, _ = main(*call, json.dumps(wrong), "2")
    assert "ended with 2" in status and json.loads(open(result, encoding="utf-8").read())["processes"] == 3, status
    status, _, _ = main("--", os.path.join(folder, "nothing"))
    assert "nothing cannot be started" in status, status
    status, _, complaints = main()
    assert status == 2 and "--from FILES" in complaints

    # The files of processes that ran elsewhere.
    files = [os.path.join(folder, f"{i}.json") for i in range(5)]
    for file, one in zip(files, RUNS):
        with open(file, "w", encoding="utf-8") as out:
            json.dump(one, out)
    status, out, _ = main("--json", result, "--from", *files)
    assert status == 0 and json.loads(open(result, encoding="utf-8").read())["cells"] == found["cells"]
